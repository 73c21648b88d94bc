"""Entries that a script left behind in a queue's lists while their job stands elsewhere (protocol page, qless 14).

A completion of an old dialect that names another queue leaves the lock in the job's own; a throttle of reqless frees a
job that was put elsewhere meanwhile; a recurring job that was made anew spawns one under a name that it gave before.
Only qless' calls see them: its counts and lists, and a pop, which first makes the job stand there. What another door
holds is never taken for one.
"""

from collections.abc import Iterable
from typing import Any

from crossdock.engine.order import Order, entry
from crossdock.model.job import Number, Place

ByCaller = tuple[float, str, Number]

#: Jobs of which something was left behind. They are faults of scripts, and looked through one by one: of more than
#: this the next ones stand where they stand, and nowhere else.
AT_MOST = 1_000


class Strays:
    __slots__ = ("depends", "jobs", "locks", "work")

    def __init__(self) -> None:
        self.locks: dict[str, Order[ByCaller]] = {}  #: by queue: until, jid, number
        self.work: dict[str, Order[Place]] = {}
        self.depends: dict[str, Order[ByCaller]] = {}
        self.jobs: dict[Number, None] = {}  #: that have one

    def add(
        self,
        locks: Iterable[tuple[str, ByCaller]] = (),
        work: Iterable[tuple[str, Place]] = (),
        depends: Iterable[tuple[str, ByCaller]] = (),
    ) -> None:
        for orders, found in ((self.locks, locks), (self.depends, depends)):
            for queue, lock in found:
                if self._is_one_too_many(lock[2]):
                    continue
                self._take(orders, queue, lock[2])
                entry(orders, queue).add(lock)
                self.jobs[lock[2]] = None
        for queue, place in work:
            if self._is_one_too_many(place[4]):
                continue
            self._take(self.work, queue, place[4])
            entry(self.work, queue).add(place)
            self.jobs[place[4]] = None

    def _is_one_too_many(self, number: Number) -> bool:
        return number not in self.jobs and len(self.jobs) >= AT_MOST

    def out_of(self, number: Number, queue: str) -> None:
        """Its job was taken out of that queue."""
        if number in self.jobs:
            self._take(self.depends, queue, number)
            self.popped(number, queue)

    def popped(self, number: Number, queue: str) -> None:
        """Its job is leased there."""
        if number in self.jobs:
            self._take(self.locks, queue, number)
            self._take(self.work, queue, number)
            self._tidy(number)

    def ready(self, number: Number, queue: str) -> None:
        """Its job is ready there: that is the same entry."""
        if number in self.jobs:
            self._take(self.work, queue, number)
            self._tidy(number)

    def forget(self, number: Number) -> None:
        if number in self.jobs:
            for orders in (self.locks, self.work, self.depends):
                for queue in list(orders):
                    self._take(orders, queue, number)
            del self.jobs[number]

    def _take(self, orders: "dict[str, Order[ByCaller]] | dict[str, Order[Place]]", queue: str, number: Number) -> None:
        """There are few."""
        order: Any = orders.get(queue)
        if order is None:
            return
        for key in [key for key in order if key[-1] == number]:
            order.take(key)
        if not order:
            del orders[queue]

    def _tidy(self, number: Number) -> None:
        every: list[Any] = [*self.locks.values(), *self.work.values(), *self.depends.values()]
        if not any(key[-1] == number for order in every for key in order):
            self.jobs.pop(number, None)

    def expired(self, queue: str, t: float) -> list[ByCaller]:
        return [lock for lock in self.locks.get(queue, ()) if lock[0] <= t]
