"""Deadlines that nobody's timer carries out (MODEL section 2): who leases next from that queue does, or reads it.

Each is kept by its caller's clock and by the server's. Callers with a clock of their own go by the first, everybody
else by the second. A job of another door never stands here, so no caller's clock can end its lease or its wait.
"""

from itertools import islice
from math import inf, nextafter
from typing import TypeAlias

from crossdock.engine.order import Order
from crossdock.model.clock import Now
from crossdock.model.job import Job, Lease, Number

ByCaller: TypeAlias = tuple[float, str, Number]  #: time, jid, number


class LazyQueue:
    __slots__ = ("due", "due_at", "late", "locks", "slots", "slots_at")

    def __init__(self) -> None:
        self.due: Order[ByCaller] = Order()  #: jobs that wait for a time
        self.due_at: Order[tuple[float, Number]] = Order()  #: the same by wall
        self.locks: Order[ByCaller] = Order()  #: leases with an end by their caller's clock, of jobs of any door
        self.late: Order[tuple[float, Number]] = Order()  #: leases that end lazily, by steady
        self.slots: Order[tuple[float, str]] = Order()  #: intervals by their next run
        self.slots_at: Order[tuple[float, str]] = Order()  #: the same by wall

    def __bool__(self) -> bool:
        return bool(self.locks or self.late or self.due or self.slots)

    def has_come(self, t: float, steady: float) -> bool:
        """Whether somebody who leases by a clock of his own at `t` may find something to carry out."""
        return (
            self.locks.begins_by(t)
            or self.late.begins_by(steady)
            or self.due.begins_by(t)
            or self.slots.begins_by(t)
        )

    def expired(self, t: float) -> int:
        """How many of `locks` are over at that time, the very instant included."""
        return self.locks.bisect_left((nextafter(t, inf), "", 0))

    def over(self, t: float) -> int:
        """How many were over before it."""
        return self.locks.bisect_left((t, "", 0))


class Lazy:
    __slots__ = ("queues", "steady", "wall")

    def __init__(self) -> None:
        self.queues: dict[str, LazyQueue] = {}  #: those that have something
        # Of all queues: when somebody who waits for a job is to be asked again.
        self.wall: Order[tuple[float, Number, str]] = Order()
        self.steady: Order[tuple[float, Number]] = Order()

    def of(self, name: str) -> LazyQueue:
        """To read: an empty one if there is nothing."""
        return self.queues.get(name) or LazyQueue()

    def _of(self, name: str) -> LazyQueue:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = LazyQueue()
        return queue

    def _left(self, name: str) -> None:
        if not self.queues[name]:
            del self.queues[name]

    def wait(self, job: Job, due: float) -> None:
        queue = self._of(job.queue)
        queue.due.add((due, job.jid, job.number))
        queue.due_at.add((job.due, job.number))
        self.wall.add((job.due, job.number, job.queue))

    def wait_no_more(self, job: Job, due: float) -> None:
        queue = self.queues[job.queue]
        queue.due.take((due, job.jid, job.number))
        queue.due_at.take((job.due, job.number))
        self.wall.take((job.due, job.number, job.queue))
        self._left(job.queue)

    def lend(self, job: Job, lease: Lease) -> None:
        queue = self.queues.get(job.queue) or self._of(job.queue)
        if lease.until is not None:
            queue.locks.add((lease.until, job.jid, job.number))
        if lease.late is not None:
            queue.late.add((lease.late, job.number))
            self.steady.add((lease.late, job.number))

    def lend_no_more(self, job: Job, lease: Lease) -> None:
        queue = self.queues[job.queue]
        if lease.until is not None:
            queue.locks.take((lease.until, job.jid, job.number))
        if lease.late is not None:
            queue.late.take((lease.late, job.number))
            self.steady.take((lease.late, job.number))
        self._left(job.queue)

    def recur(self, name: str, jid: str, slot: float, slot_at: float) -> None:
        queue = self._of(name)
        queue.slots.add((slot, jid))
        queue.slots_at.add((slot_at, jid))
        self.wall.add((slot_at, 0, name))

    def recur_no_more(self, name: str, jid: str, slot: float, slot_at: float) -> None:
        queue = self.queues[name]
        queue.slots.take((slot, jid))
        queue.slots_at.take((slot_at, jid))
        self.wall.take((slot_at, 0, name))
        self._left(name)

    def has_work(self, name: str, now: Now) -> bool:
        """Whether somebody who leases by the server's clock would find something done for him there."""
        queue = self.queues.get(name)
        return queue is not None and (
            queue.late.begins_by(now.steady)
            or queue.due_at.begins_by(now.wall)
            or queue.slots_at.begins_by(now.wall)
        )

    def due_in(self, since: Now, now: Now) -> float | None:
        """Seconds until the next deadline by the server's clock behind `since`; 0: it has come; None: there is none."""
        # By value, not by index: that would have to be counted anew after each change.
        waits = [
            *(due - now.wall for due, _, _ in islice(self.wall.irange((nextafter(since.wall, inf), 0, "")), 1)),
            *(end - now.steady for end, _ in islice(self.steady.irange((nextafter(since.steady, inf), 0)), 1)),
        ]
        return max(0.0, min(waits)) if waits else None
