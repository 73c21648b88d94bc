"""Lazy deadlines: evaluated on the next lease or read of the queue, not by a timer (model.md section 2).

Each deadline is stored by its caller's clock and by the server's. Callers with their own clock use the first, all
others the second. Jobs of other protocols have no lazy deadlines, so no caller's clock can end their leases or
delays. An interval of an operator is stored by the server's clock alone.
"""

from collections.abc import Container, Iterable, Iterator, Sized
from heapq import heapify, heappop, heappush
from math import inf, nextafter
from typing import Any, Final, Protocol, TypeAlias

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.clock import Now
from crossdock.model.job import Job, Lease, Number
from crossdock.model.records import Interval

ByCaller: TypeAlias = tuple[float, str, Number]  #: time, jid, number


class LazyQueue:
    """The lazy deadlines of one queue."""

    __slots__ = ("alarm", "due", "due_at", "late", "locks", "slots")

    def __init__(self, alarm: float = inf) -> None:
        self.due: SortedList[ByCaller] = SortedList()  #: delayed jobs, by their callers' clocks
        self.due_at: SortedList[tuple[float, Number]] = SortedList()  #: the same jobs by wall
        self.locks: SortedList[ByCaller] = SortedList()  #: leases that end by their callers' clocks
        self.late: SortedList[tuple[float, Number]] = SortedList()  #: leases that end lazily, by steady
        self.slots = NONE
        self.alarm = alarm  #: the alarm of its leases, a copy of `LazyDeadlines.lates`: every lease reads it

    def __bool__(self) -> bool:
        return bool(self.locks or self.late or self.due or self.slots)

    def has_come(self, t: float, now: Now) -> bool:
        """Whether a deadline has come for a caller whose clock shows `t`."""
        # `begins_by` of the three lists, without its calls: every pop asks, and they take 2 % of it.
        locks, late, due = self.locks._lists, self.late._lists, self.due._lists
        if (locks and locks[0][0][0] <= t) or (late and late[0][0][0] <= now.steady) or (due and due[0][0][0] <= t):
            return True
        slots = self.slots
        return slots is not NONE and (slots.callers.begins_by(t) or slots.own.begins_by(now.wall))

    def expired(self, t: float) -> int:
        """How many of `locks` have ended at that time, those that end at it included."""
        return self.locks.bisect_left((nextafter(t, inf), "", 0))

    def over(self, t: float) -> int:
        """How many of `locks` ended before that time."""
        return self.locks.bisect_left((t, "", 0))


class LazyDeadlines:
    """The lazy deadlines of all queues, with alarms that tell when clients that wait on a queue are to be woken.
    Alarms of leases are by steady time, all others by wall time.
    """

    __slots__ = ("_heard", "lates", "queues", "walls")

    def __init__(self) -> None:
        self.queues: dict[str, LazyQueue] = {}  #: those that have a deadline
        self.lates = QueueDeadlines(self.queues)
        self.walls = QueueDeadlines(self.queues)
        self._heard = -inf  #: alarms by wall time were handled up to this time

    def of(self, name: str) -> LazyQueue:
        """The deadlines of a queue, to read: an empty object if it has none."""
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
        queue.due_at.add((job.due, job.number))
        self._set_by_wall(job.queue, job.due)

    def wait_no_more(self, job: Job, due: float) -> None:
        queue = self.queues[job.queue]
        queue.due.take((due, job.jid, job.number))
        queue.due_at.take((job.due, job.number))
        self._left(job.queue)

    def lend(self, job: Job, lease: Lease) -> None:
        """A job was leased."""
        queue = self.queues.get(job.queue)
        if queue is None:
            queue = self._of(job.queue)
        if lease.until is not None:
            queue.locks.add((lease.until, job.jid, job.number))
        late = lease.late
        if late is not None:
            queue.late.add((late, job.number))
            if late < queue.alarm:
                queue.alarm = late
                self.lates.set(job.queue, late)

    def lend_no_more(self, job: Job, lease: Lease) -> None:
        """Its lease ended."""
        queue = self.queues[job.queue]
        if lease.until is not None:
            queue.locks.take((lease.until, job.jid, job.number))
        if lease.late is not None:
            queue.late.take((lease.late, job.number))
        if not queue.late:
            self._left(job.queue)

    def _set_by_wall(self, name: str, at: float) -> None:
        if at < self.walls.at.get(name, inf):
            self.walls.set(name, at)

    def recur(self, interval: Interval) -> None:
        queue = self._of(interval.queue)
        if queue.slots is NONE:
            queue.slots = IntervalTimes()
        queue.slots.add(interval)
        self._set_by_wall(interval.queue, interval.next_at)

    def recur_no_more(self, interval: Interval) -> None:
        self.queues[interval.queue].slots.take(interval)
        self._left(interval.queue)

    def has_work(self, name: str, now: Now) -> bool:
        """Whether a deadline of the queue has come by the server's clock."""
        queue = self.queues.get(name)
        return queue is not None and (
            queue.late.begins_by(now.steady) or queue.due_at.begins_by(now.wall) or queue.slots.at.begins_by(now.wall)
        )

    def due_in(self, now: Now) -> float | None:
        """Seconds until the next alarm by the server's clock, or less. 0: it has come. None: there is none."""
        if now.wall < self._heard:
            self._set_back(now)
        wait = min(self.lates.first() - now.steady, self.walls.first() - now.wall)
        return max(0.0, wait) if wait < inf else None

    def come(self, now: Now, limit: int) -> list[str]:
        """Queues where a deadline has come since the last call and is not handled yet. Looks at up to twice `limit`
        queues.
        """
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
        """Alarms that were handled are in the future again, after the clock was set back."""
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
    """The next deadline after that time. It is found by value, because an index by rank would be rebuilt after each
    change.
    """
    first: float = next(order.irange((nextafter(at, inf),)), (inf,))[0]
    return first


# When the intervals of a queue are due, each by the clock that it follows (model.md section 2).
#
# An interval of a caller with its own clock follows the clocks of such callers, and for all others the server's. An
# interval of an operator follows the server's clock alone, so no caller can bring it forward.


Slot: TypeAlias = tuple[float, str]  #: time, and the jid of the interval


class IntervalTimes:
    __slots__ = ("at", "callers", "own")

    def __init__(self) -> None:
        self.callers: SortedList[Slot] = SortedList()  #: intervals that follow callers' clocks, by these
        self.own: SortedList[Slot] = SortedList()  #: intervals that follow the server's clock, by wall
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
        """Runs that are due: the time, the interval and the current time by its clock. `t` is the time of a caller
        with its own clock, None for all others. At most `limit` by each clock.
        """
        clocks = ((self.at, wall),) if t is None else ((self.callers, t), (self.own, wall))
        for order, until in clocks:
            begin = order.bisect_left((0.0, ""))  # the scripts look from 0 on
            for slot, jid in order.islice(begin, begin + limit):
                if slot > until:
                    break
                yield slot, jid, until


#: For queues without intervals, which are nearly all.
NONE: Final = IntervalTimes()


# The next deadline over all queues.
#
# Each queue is here once, at or before its first deadline. Most deadlines are removed before they come, and an alarm
# that comes too early is corrected when it comes. So neither a lease nor its end has to update an alarm.


class Names(Container[str], Sized, Protocol):
    """The queues that have deadlines."""


#: Entries that the heap may have beyond twice the number of queues: of queues without deadlines, or with an earlier
#: alarm.
_STALE_AT_MOST: Final = 1_000


class QueueDeadlines:
    __slots__ = ("_alive", "_heap", "at")

    def __init__(self, alive: Names) -> None:
        self._alive = alive
        self.at: dict[str, float] = {}  #: by queue; other entries of the heap are outdated
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, name: str, at: float) -> None:
        """Set the alarm of a queue, not later than its current one."""
        self.at[name] = at
        heappush(self._heap, (at, name))
        if len(self._heap) > _STALE_AT_MOST + 2 * len(self._alive):
            self.at = {name: at for name, at in self.at.items() if name in self._alive}
            self._heap = [(at, name) for name, at in self.at.items()]
            heapify(self._heap)

    def first(self) -> float:
        """When the next alarm comes. Its deadline may be gone by then."""
        heap = self._heap
        while heap and self.at.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else inf

    def hear(self, until: float, limit: int) -> list[str]:
        """Remove alarms that have come, at most `limit`, and return their queues, which are to be looked at."""
        names: list[str] = []
        while len(names) < limit and self.first() <= until:
            _, name = heappop(self._heap)
            del self.at[name]
            names.append(name)
        return names

    def clear(self) -> None:
        self.at.clear()
        self._heap.clear()
