"""Deadlines that nobody's timer carries out (MODEL section 2): who leases next from that queue does, or reads it.

Each is kept by its caller's clock and by the server's. Callers with a clock of their own go by the first, everybody
else by the second. A job of another door never stands here, so no caller's clock can end its lease or its wait.
"""

from itertools import islice
from math import inf, nextafter
from typing import Final, TypeAlias

from crossdock.engine.order import Order
from crossdock.model.clock import Now
from crossdock.model.job import Job, Lease, Number

ByCaller: TypeAlias = tuple[float, str, Number]  #: time, jid, number


#: Leases that a queue may have unsorted: about a millisecond for whoever wants them in order.
_FRESH_AT_MOST: Final = 1_000


class LazyQueue:
    """Most leases are over before anybody wants to know their order: so they are sorted when somebody does."""

    __slots__ = ("_late", "_locks", "due", "due_at", "fresh", "next_steady", "next_t", "slots", "slots_at")

    def __init__(self) -> None:
        self.due: Order[ByCaller] = Order()  #: jobs that wait for a time
        self.due_at: Order[tuple[float, Number]] = Order()  #: the same by wall
        self._locks: Order[ByCaller] = Order()
        self._late: Order[tuple[float, Number]] = Order()
        self.fresh: dict[Number, Job] = {}  #: leased, and in neither of the two yet
        self.slots: Order[tuple[float, str]] = Order()  #: intervals by their next run
        self.slots_at: Order[tuple[float, str]] = Order()  #: the same by wall
        # Nothing falls due before these: by a caller's clock, and leases by the server's.
        self.next_t = inf
        self.next_steady = inf

    def __bool__(self) -> bool:
        return bool(self.fresh or self._locks or self._late or self.due or self.slots)

    @property
    def locks(self) -> Order[ByCaller]:
        """Leases with an end by their caller's clock, of jobs of any door."""
        if self.fresh:
            self.sort()
        return self._locks

    @property
    def late(self) -> Order[tuple[float, Number]]:
        """Leases that end lazily, by steady."""
        if self.fresh:
            self.sort()
        return self._late

    def sort(self) -> None:
        leased = [(job, job.lease) for job in self.fresh.values() if job.lease is not None]
        self.fresh.clear()
        self._locks.update((lease.until, job.jid, job.number) for job, lease in leased if lease.until is not None)
        self._late.update((lease.late, job.number) for job, lease in leased if lease.late is not None)

    def take(self, job: Job, lease: Lease) -> None:
        """Of a lease that was sorted in."""
        if lease.until is not None:
            self._locks.take((lease.until, job.jid, job.number))
        if lease.late is not None:
            self._late.take((lease.late, job.number))

    def has_come(self, t: float, steady: float) -> bool:
        """Whether somebody who leases by a clock of his own at `t` may find something to carry out."""
        if self.next_t <= t:
            self.next_t = min([order.first()[0] for order in (self.locks, self.due, self.slots) if order], default=inf)
        if self.next_steady <= steady:
            self.next_steady = self.late.first()[0] if self.late else inf
        return self.next_t <= t or self.next_steady <= steady

    def expired(self, t: float) -> int:
        """How many of `locks` are over at that time, the very instant included."""
        return self.locks.bisect_left((nextafter(t, inf), "", 0))

    def over(self, t: float) -> int:
        """How many were over before it."""
        return self.locks.bisect_left((t, "", 0))


class Lazy:
    __slots__ = ("next_late", "queues", "wall")

    def __init__(self) -> None:
        self.queues: dict[str, LazyQueue] = {}  #: those that have something
        # Of all queues: when somebody who waits for a job is to be asked again.
        self.wall: Order[tuple[float, Number, str]] = Order()
        self.next_late = inf  #: steady; no lease ends before it, of those that `due_in` has not told of

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
        queue.next_t = min(queue.next_t, due)
        queue.due_at.add((job.due, job.number))
        self.wall.add((job.due, job.number, job.queue))

    def wait_no_more(self, job: Job, due: float) -> None:
        queue = self.queues[job.queue]
        queue.due.take((due, job.jid, job.number))
        queue.due_at.take((job.due, job.number))
        self.wall.take((job.due, job.number, job.queue))
        self._left(job.queue)

    def lend(self, job: Job, lease: Lease) -> None:
        queue = self.queues.get(job.queue)
        if queue is None:
            queue = self._of(job.queue)
        fresh, until, late = queue.fresh, lease.until, lease.late
        fresh[job.number] = job
        if until is not None and until < queue.next_t:
            queue.next_t = until
        if late is not None:
            if late < queue.next_steady:
                queue.next_steady = late
            if late < self.next_late:
                self.next_late = late
        if len(fresh) >= _FRESH_AT_MOST:
            queue.sort()

    def lend_no_more(self, job: Job, lease: Lease) -> None:
        queue = self.queues[job.queue]
        if queue.fresh.pop(job.number, None) is None:
            queue.take(job, lease)
        if not queue.fresh:
            self._left(job.queue)

    def recur(self, name: str, jid: str, slot: float, slot_at: float) -> None:
        queue = self._of(name)
        queue.slots.add((slot, jid))
        queue.next_t = min(queue.next_t, slot)
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
            queue.late.begins_by(now.steady) or queue.due_at.begins_by(now.wall) or queue.slots_at.begins_by(now.wall)
        )

    def due_in(self, since: Now, now: Now) -> float | None:
        """Seconds until the next deadline by the server's clock behind `since`; 0: it has come; None: there is none."""
        if self.next_late <= since.steady:
            behind = (nextafter(since.steady, inf), 0)
            # By value, not by index: that would have to be counted anew after each change.
            firsts = (next(queue.late.irange(behind), (inf, 0))[0] for queue in self.queues.values())
            self.next_late = min(firsts, default=inf)
        waits = [due - now.wall for due, _, _ in islice(self.wall.irange((nextafter(since.wall, inf), 0, "")), 1)]
        if self.next_late < inf:
            waits.append(self.next_late - now.steady)
        return max(0.0, min(waits)) if waits else None
