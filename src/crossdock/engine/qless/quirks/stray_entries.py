"""Entries that a script left behind in a queue's lists while their job stands elsewhere (protocol page, qless 14).

A completion of an old dialect that names another queue leaves the lock in the job's own; a throttle of reqless frees a
job that was put elsewhere meanwhile; a recurring job that was made anew spawns one under a name that it gave before.
Only qless' calls see them: its counts and lists, and a pop, which first makes the job stand there. What another door
holds is never taken for one."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import group_of, qless_data
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.states import State

ByCaller = tuple[float, str, Number]

#: Jobs of which something was left behind. They are faults of scripts, and looked through one by one: of more than
#: this the next ones stand where they stand, and nowhere else.
AT_MOST = 1_000


class StrayEntries:
    __slots__ = ("depends", "jobs", "locks", "work")

    def __init__(self) -> None:
        self.locks: dict[str, SortedList[ByCaller]] = {}  #: by queue: until, jid, number
        self.work: dict[str, SortedList[SortKey]] = {}
        self.depends: dict[str, SortedList[ByCaller]] = {}
        self.jobs: dict[Number, None] = {}  #: that have one

    def add(
        self,
        locks: Iterable[tuple[str, ByCaller]] = (),
        work: Iterable[tuple[str, SortKey]] = (),
        depends: Iterable[tuple[str, ByCaller]] = (),
    ) -> None:
        for orders, found in ((self.locks, locks), (self.depends, depends)):
            for queue, lock in found:
                if self._is_one_too_many(lock[2]):
                    continue
                self._take(orders, queue, lock[2])
                entry(orders, queue).add(lock)
                self.jobs[lock[2]] = None
        for queue, sort_key in work:
            if self._is_one_too_many(sort_key[4]):
                continue
            self._take(self.work, queue, sort_key[4])
            entry(self.work, queue).add(sort_key)
            self.jobs[sort_key[4]] = None

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

    def _take(
        self, orders: "dict[str, SortedList[ByCaller]] | dict[str, SortedList[SortKey]]", queue: str, number: Number
    ) -> None:
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


# Lists that a job is still in though it is something else by now.
#
# A script that makes a recurring job's next one overwrites whatever has that name, and forgets to take it out of the
# failed and the completed. qless' own lists show it there; to everybody else it is what it is.


#: Group and order of a failure, or when it was complete; and whose.
Failed: TypeAlias = tuple[str, int, Number]
Done: TypeAlias = tuple[float, str, Number]

#: Jobs that are remembered so: they are few, and looked through one by one.


class StaleListings:
    __slots__ = ("done", "failed", "jobs")

    def __init__(self) -> None:
        self.failed: SortedList[Failed] = SortedList()
        self.done: SortedList[Done] = SortedList()
        self.jobs: dict[Number, set[Failed | Done]] = {}

    def leave(self, job: Job) -> None:
        """It is overwritten where it stands."""
        protocol_data = qless_data(job)
        if protocol_data is None or len(self.jobs) >= AT_MOST:
            return
        if job.state is State.FAILED:
            self.restore(failed=[(group_of(job), protocol_data.order, job.number)])
        elif job.state is State.COMPLETE:
            self.undone(job)
            self.restore(done=[(protocol_data.time, job.jid, job.number)])

    def restore(self, failed: "list[Failed] | None" = None, done: "list[Done] | None" = None) -> None:
        for failure in failed or ():
            self.failed.add(failure)
            self.jobs.setdefault(failure[2], set()).add(failure)
        for success in done or ():
            self.done.add(success)
            self.jobs.setdefault(success[2], set()).add(success)

    def unfailed(self, job: Job, group: str) -> None:
        """Its failures of that group are taken out."""
        self._take(job.number, lambda each: each[0] == group)

    def unlist(self, failure: Failed) -> None:
        self._take(failure[2], lambda each: each == failure)

    def undone(self, job: Job) -> None:
        """It is complete anew, or no longer."""
        self._take(job.number, lambda each: isinstance(each[0], float))

    def forget(self, number: Number) -> None:
        self._take(number, lambda each: True)

    def _take(self, number: Number, which: "Callable[[Failed | Done], bool]") -> None:
        left: set[Failed | Done] = set()
        for each in self.jobs.pop(number, ()):
            if not which(each):
                left.add(each)
            elif isinstance(each[0], str):
                self.failed.take((each[0], int(each[1]), each[2]))
            else:
                self.done.take((each[0], str(each[1]), each[2]))
        if left:
            self.jobs[number] = left
