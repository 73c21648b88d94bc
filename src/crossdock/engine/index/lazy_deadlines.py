"""Deadlines that nobody's timer carries out (MODEL section 2): who leases next from that queue does, or reads it.

Each is kept by its caller's clock and by the server's. Callers with a clock of their own go by the first, everybody
else by the second. A job of another door never stands here, so no caller's clock can end its lease or its wait; an
interval that was not made by such a caller stands here by the server's alone."""

from collections.abc import Container, Iterable, Iterator, Sized
from heapq import heapify, heappop, heappush
from math import inf, nextafter
from typing import Any, Final, Protocol, TypeAlias

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.clock import Now
from crossdock.model.job import Job, Lease, Number
from crossdock.model.records import Interval

ByCaller: TypeAlias = tuple[float, str, Number]  #: time, jid, number


#: Leases that a queue may have unsorted: about a millisecond for whoever wants them in order.
_FRESH_AT_MOST: Final = 1_000


class LazyQueue:
    """The deadlines of one queue.

    Most leases end before their order is asked for, so they are sorted by the first read that needs it. Such a read
    changes how the leases are kept, not which there are: `locks` and `late` have the same entries before and after.
    """

    __slots__ = ("_late", "_locks", "alarm", "due", "due_at", "fresh", "next_steady", "next_t", "slots")

    def __init__(self, alarm: float = inf) -> None:
        self.due: SortedList[ByCaller] = SortedList()  #: jobs that wait for a time
        self.due_at: SortedList[tuple[float, Number]] = SortedList()  #: the same by wall
        self._locks: SortedList[ByCaller] = SortedList()
        self._late: SortedList[tuple[float, Number]] = SortedList()
        self.fresh: dict[Number, Job] = {}  #: leased, and in neither of the two yet
        self.slots = NONE
        # Nothing falls due before these: by a caller's clock, and by the server's. There is no saying when the time of
        # an interval comes by a clock that may be set, so it is looked for at every lease.
        self.next_t = inf
        self.next_steady = inf
        self.alarm = alarm  #: of its leases, as `Lazy.lates` has it: every lease looks

    def __bool__(self) -> bool:
        return bool(self.fresh or self._locks or self._late or self.due or self.slots)

    @property
    def locks(self) -> SortedList[ByCaller]:
        """Leases with an end by their caller's clock, of jobs of any door."""
        if self.fresh:
            self.sort()
        return self._locks

    @property
    def late(self) -> SortedList[tuple[float, Number]]:
        """Leases that end lazily, by steady."""
        if self.fresh:
            self.sort()
        return self._late

    def sort(self) -> None:
        leased = [(job.jid, job.number, job.lease) for job in self.fresh.values() if job.lease is not None]
        self.fresh.clear()
        self._locks.update([(lease.until, jid, number) for jid, number, lease in leased if lease.until is not None])
        self._late.update([(lease.late, number) for _, number, lease in leased if lease.late is not None])

    def take(self, job: Job, lease: Lease) -> None:
        """Of a lease that was sorted in."""
        if lease.until is not None:
            self._locks.take((lease.until, job.jid, job.number))
        if lease.late is not None:
            self._late.take((lease.late, job.number))

    def has_come(self, t: float, now: Now) -> bool:
        """Whether somebody who leases by a clock of his own at `t` may find something to carry out."""
        if self.next_t <= t:
            orders = (self.locks, self.due, self.slots.callers)
            self.next_t = min([order.first()[0] for order in orders if order], default=inf)
        if self.next_steady <= now.steady:
            late, own = self.late.first()[0] if self.late else inf, self.slots.own
            self.next_steady = -inf if own else late
            if late <= now.steady or own.begins_by(now.wall):
                return True
        return self.next_t <= t

    def expired(self, t: float) -> int:
        """How many of `locks` are over at that time, the very instant included."""
        return self.locks.bisect_left((nextafter(t, inf), "", 0))

    def over(self, t: float) -> int:
        """How many were over before it."""
        return self.locks.bisect_left((t, "", 0))


class LazyDeadlines:
    """When somebody who waits for a job is to be asked again, alarms say: of leases by steady, of the rest by wall."""

    __slots__ = ("_heard", "lates", "queues", "walls")

    def __init__(self) -> None:
        self.queues: dict[str, LazyQueue] = {}  #: those that have something
        self.lates = QueueDeadlines(self.queues)
        self.walls = QueueDeadlines(self.queues)
        self._heard = -inf  #: alarms by wall up to then

    def of(self, name: str) -> LazyQueue:
        """To read: an empty one if there is nothing."""
        return self.queues.get(name) or LazyQueue()

    def _of(self, name: str) -> LazyQueue:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = LazyQueue(self.lates.at.get(name, inf))
        return queue

    def _left(self, name: str) -> None:
        if not self.queues[name]:
            del self.queues[name]

    def wait(self, job: Job, due: float) -> None:
        queue = self._of(job.queue)
        queue.due.add((due, job.jid, job.number))
        queue.next_t = min(queue.next_t, due)
        queue.due_at.add((job.due, job.number))
        self._set_by_wall(job.queue, job.due)

    def wait_no_more(self, job: Job, due: float) -> None:
        queue = self.queues[job.queue]
        queue.due.take((due, job.jid, job.number))
        queue.due_at.take((job.due, job.number))
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
            if late < queue.alarm:
                queue.alarm = late
                self.lates.set(job.queue, late)
        if len(fresh) >= _FRESH_AT_MOST:
            queue.sort()

    def lend_no_more(self, job: Job, lease: Lease) -> None:
        queue = self.queues[job.queue]
        if queue.fresh.pop(job.number, None) is None:
            queue.take(job, lease)
        if not queue.fresh:
            self._left(job.queue)

    def _set_by_wall(self, name: str, at: float) -> None:
        if at < self.walls.at.get(name, inf):
            self.walls.set(name, at)

    def recur(self, interval: Interval) -> None:
        queue = self._of(interval.queue)
        if queue.slots is NONE:
            queue.slots = IntervalTimes()
        queue.slots.add(interval)
        if interval.by_server:
            queue.next_steady = -inf
        else:
            queue.next_t = min(queue.next_t, interval.next)
        self._set_by_wall(interval.queue, interval.next_at)

    def recur_no_more(self, interval: Interval) -> None:
        self.queues[interval.queue].slots.take(interval)
        self._left(interval.queue)

    def has_work(self, name: str, now: Now) -> bool:
        """Whether somebody who leases by the server's clock would find something done for him there."""
        queue = self.queues.get(name)
        return queue is not None and (
            queue.late.begins_by(now.steady) or queue.due_at.begins_by(now.wall) or queue.slots.at.begins_by(now.wall)
        )

    def due_in(self, now: Now) -> float | None:
        """Seconds until the next deadline by the server's clock that `come` has not told of, or less; 0: it has come;
        None: there is none."""
        if now.wall < self._heard:
            self._set_back(now)
        wait = min(self.lates.first() - now.steady, self.walls.first() - now.wall)
        return max(0.0, wait) if wait < inf else None

    def come(self, now: Now, limit: int) -> list[str]:
        """Queues where a deadline has come since this was asked, and is not carried out: looks at `limit` of them, or
        twice as many."""
        if now.wall < self._heard:
            self._set_back(now)
        lates, walls = self.lates.hear(now.steady, limit), self.walls.hear(now.wall, limit)
        for name in lates:
            queue = self.queues.get(name)
            if queue is not None:
                queue.alarm = _behind(queue.late, now.steady)
                if queue.alarm < inf:
                    self.lates.set(name, queue.alarm)
        self._look_by_wall(walls, now)
        return [name for name in dict.fromkeys((*lates, *walls)) if self.has_work(name, now)]

    def _set_back(self, now: Now) -> None:
        """What the clock has told of is still to come."""
        self.walls.clear()
        self._look_by_wall(self.queues, now)

    def _look_by_wall(self, names: Iterable[str], now: Now) -> None:
        self._heard = now.wall
        for name in names:
            queue = self.queues.get(name)
            if queue is not None:
                at = min(_behind(queue.due_at, now.wall), _behind(queue.slots.at, now.wall))
                if at < inf:
                    self.walls.set(name, at)


def _behind(order: SortedList[Any], at: float) -> float:
    """The next deadline after that time: by value, since an index would have to be counted anew after each change."""
    first: float = next(order.irange((nextafter(at, inf),)), (inf,))[0]
    return first


# When a queue's intervals come next, each by the clock that it follows (MODEL section 2).
#
# One that a caller with a clock of his own made follows such callers' clocks, and to everybody else the server's. Any
# other, an operator's, follows the server's alone: no caller can bring it forward.


Slot: TypeAlias = tuple[float, str]  #: time, whose


class IntervalTimes:
    __slots__ = ("at", "callers", "own")

    def __init__(self) -> None:
        self.callers: SortedList[Slot] = SortedList()  #: those that follow callers' clocks, by these
        self.own: SortedList[Slot] = SortedList()  #: those that follow the server's, by wall
        self.at: SortedList[Slot] = SortedList()  #: both by wall

    def __len__(self) -> int:
        return len(self.at)

    def add(self, interval: Interval) -> None:
        self._order(interval).add((interval.next, interval.jid))
        self.at.add((interval.next_at, interval.jid))

    def take(self, interval: Interval) -> None:
        self._order(interval).take((interval.next, interval.jid))
        self.at.take((interval.next_at, interval.jid))

    def _order(self, interval: Interval) -> SortedList[Slot]:
        return self.own if interval.by_server else self.callers

    def come(self, t: float | None, wall: float, limit: int) -> Iterator[tuple[float, str, float]]:
        """Next slots that have come, whose they are, and what time it is by their clock: for a caller at `t`, or (None)
        for everybody else. At most so many by each clock."""
        clocks = ((self.at, wall),) if t is None else ((self.callers, t), (self.own, wall))
        for order, until in clocks:
            begin = order.bisect_left((0.0, ""))  # the scripts look from 0 on
            for slot, jid in order.islice(begin, begin + limit):
                if slot > until:
                    break
                yield slot, jid, until


#: Of queues that have no intervals, which are nearly all.
NONE: Final = IntervalTimes()


# Which of many queues has a deadline next, where each of them keeps its own in order.
#
# A queue stands here once, at its first deadline or before it: most deadlines are gone before they come, and nobody
# corrects an alarm that comes too early but whoever hears it. So neither a lease nor its end has to look further.


class Names(Container[str], Sized, Protocol):
    """The queues that have deadlines at all."""


#: Entries that may be there beside twice the queues: of such that have nothing any more, or an earlier alarm.
_STALE_AT_MOST: Final = 1_000


class QueueDeadlines:
    __slots__ = ("_alive", "_heap", "at")

    def __init__(self, alive: Names) -> None:
        self._alive = alive
        self.at: dict[str, float] = {}  #: by queue; what the heap says besides counts no more
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, name: str, at: float) -> None:
        """Not later than it is set by now."""
        self.at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > _STALE_AT_MOST + 2 * len(self._alive):
            self.at = {name: at for name, at in self.at.items() if name in self._alive}
            self._heap = [(at, name) for name, at in self.at.items()]
            heapify(self._heap)

    def first(self) -> float:
        """When the next one comes; what it is about may be over by then."""
        heap = self._heap
        while heap and self.at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def hear(self, until: float, limit: int) -> list[str]:
        """Queues whose alarms have come, at most so many. They have none any more: they are to be looked at."""
        names: list[str] = []
        while len(names) < limit and self.first() <= until:
            _, name = heappop(self._heap)
            del self.at[name]
            names.append(name)
        return names

    def clear(self) -> None:
        self.at.clear()
        self._heap.clear()
