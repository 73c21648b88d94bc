"""Reads that only qless and the operator's view of it need: settings, tracked jobs, tags, throttles, statistics, and
the lists of a queue by its callers' clocks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import inf, nextafter
from typing import Any, Final, NamedTuple, TypeVar

from crossdock.engine.index.lazy_deadlines import ByCaller, IntervalTimes
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.qless.history import number as number_setting
from crossdock.engine.qless.quirks import surfacing
from crossdock.engine.queries.queues import jobs_in_turn
from crossdock.engine.records.stats import QueueDay
from crossdock.engine.state import EngineState
from crossdock.model.job import Job, Number
from crossdock.model.records import Throttle

T = TypeVar("T", bound=tuple[Any, ...])

#: A list with more entries is shown without stray entries: it is not sorted anew for them.
_MERGED_AT_MOST: Final = 10_000

_HEARTBEAT_S: Final = 60.0


def settings(state: EngineState) -> Mapping[str, str]:
    return state.qless.config


def setting(state: EngineState, option: str, default: float) -> float:
    """A setting that is a number."""
    return number_setting(state, option, default)


def heartbeat(state: EngineState, queue: str) -> float:
    """How long a lease from that queue lasts. The seed has the queue's name at the end, all clients at the
    beginning."""
    if not state.qless.config:
        return _HEARTBEAT_S
    for option in (f"{queue}-heartbeat", f"heartbeat-{queue}"):
        if option in state.qless.config:
            return number_setting(state, option, _HEARTBEAT_S)
    return number_setting(state, "heartbeat", _HEARTBEAT_S)


# Tracked jobs and tags.


def tracked_jids(state: EngineState) -> Mapping[str, float]:
    """By jid: since when it is tracked. Its job need not be there."""
    return state.qless.watched


def is_tracked(state: EngineState, jid: str) -> bool:
    return jid in state.qless.watched


def tracked_and_dependents(state: EngineState, job: Job) -> tuple[bool, Mapping[Number, None] | None]:
    """Whether a job is tracked, and the numbers of the jobs that wait for it, if any do. Every pop asks both."""
    return job.jid in state.qless.watched, state.dependents.get(job.number) if state.dependents else None


def jobs_by_tag(state: EngineState) -> Mapping[str, SortedList[ByCaller]]:
    """By tag: since when each job has it, its jid and its number, in order."""
    return state.tags.jobs


def tagged(state: EngineState, tag: str) -> Sequence[ByCaller]:
    return state.tags.jobs.get(tag, ())


def tagged_since(state: EngineState, tag: str, job: Job) -> float:
    """Since when a job has a tag that it has."""
    return state.tags.since[tag][job.number]


def tag_uses(state: EngineState) -> Mapping[str, int]:
    """By tag: how many jobs were given it, less those that lost it."""
    return state.tags.uses


def tags_by_use(state: EngineState) -> SortedList[tuple[int, str]]:
    """The tags in use, the most used last."""
    return state.tags.top


# Throttles and statistics.


def throttle_named(state: EngineState, name: str) -> Throttle | None:
    return state.throttles.get(name)


def throttles_by_name(state: EngineState) -> Mapping[str, Throttle]:
    return state.throttles


def pending_in(state: EngineState, throttle: str) -> Sequence[tuple[float, str]]:
    """The jids that wait for that throttle, and since when, in order."""
    return state.pending.get(throttle, ())


def stats_of_day(state: EngineState, queue: str, day: int) -> QueueDay | None:
    """What happened in that queue on the UTC day that begins in that second."""
    return state.stats.page(queue, day)


def stats_by_queue(state: EngineState) -> Mapping[str, Mapping[int, QueueDay]]:
    """By queue and by the first second of a UTC day."""
    return state.stats.days


# Lists of jobs that ended. A job that a script overwrote may still be listed where it was (`StaleListings`).


def completed_index(state: EngineState) -> SortedList[ByCaller]:
    """Completed jobs that are kept, in order, without stale listings."""
    return state.qless.completed


def completed_list(state: EngineState) -> Sequence[ByCaller]:
    """Completed jobs in order, as qless lists them."""
    return _merged(state.qless.completed, state.qless.stale_listings.done)


def failed_groups(state: EngineState) -> Mapping[str, SortedList[tuple[int, Number]]]:
    """By group: order and number of the failed jobs of qless, without stale listings."""
    return state.qless.failed_in


def failed_counts(state: EngineState) -> Counter[str]:
    """By group: how many failures qless lists."""
    counts = Counter({name: len(order) for name, order in state.qless.failed_in.items()})
    counts.update(name for name, _, _ in state.qless.stale_listings.failed)
    return counts


def failed_list(state: EngineState, group: str) -> Sequence[tuple[int, Number]]:
    """Order and number of the failures of that group, as qless lists them."""
    stale = [(order, number) for name, order, number in state.qless.stale_listings.failed if name == group]
    return _merged(state.qless.failed_in.get(group, ()), stale)


def lists_failures_of(state: EngineState, group: str) -> bool:
    return group in state.qless.failed_in or any(name == group for name, _, _ in state.qless.stale_listings.failed)


# Lists of a queue. A script may have left entries of a job behind in a queue that it left (`StrayEntries`).


def queue_names(state: EngineState) -> Iterable[str]:
    """All queues that have a list of jobs or of recurring jobs, a copy."""
    known = {**state.queues, **state.leased_in, **state.lazy.queues, **state.blocked_in, **state.held_in}
    return dict.fromkeys((*known, *state.scheduled_in, *state.retrying_in))


def locks_index(state: EngineState, queue: str) -> SortedList[ByCaller]:
    """Leases with an end by their caller's clock, in order, without stray entries."""
    return state.lazy.of(queue).locks


def locks_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Leases with an end by their caller's clock, as qless lists them."""
    return _merged(state.lazy.of(queue).locks, state.qless.stray_entries.locks.get(queue, ()))


def ends_before(locks: Sequence[ByCaller], t: float) -> int:
    """How many locks of a list end before that time."""
    return _rank(locks, (t, "", 0))


def ends_by(locks: Sequence[ByCaller], t: float) -> int:
    """How many locks of a list end before that time or at it."""
    return _rank(locks, (nextafter(t, inf), "", 0))


def _rank(order: Sequence[T], entry: T) -> int:
    return order.bisect_left(entry) if isinstance(order, SortedList) else bisect_left(order, entry)


def unlisted_lease_count(state: EngineState, queue: str) -> int:
    """How many leases of that queue have no end by a caller's clock: those of other protocols."""
    return state.leased_in.get(queue, 0) - len(state.lazy.of(queue).locks)


def due_index(state: EngineState, queue: str) -> SortedList[ByCaller]:
    """Jobs that wait for a time by their caller's clock, in order."""
    return state.lazy.of(queue).due


def has_due(state: EngineState, queue: str, t: float) -> bool:
    """Whether a job of `due_index` is due."""
    lazy = state.lazy.queues.get(queue)
    return lazy is not None and lazy.next_t <= t and lazy.due.begins_by(t)


def recurring_times(state: EngineState, queue: str) -> IntervalTimes:
    """When the recurring jobs of that queue come next."""
    return state.lazy.of(queue).slots


def recurring_list(state: EngineState, queue: str) -> Sequence[tuple[float, str]]:
    """The next times of the recurring jobs of that queue, each by its own clock, and their jids."""
    times = state.lazy.of(queue).slots
    return _merged(times.callers, times.own)


def blocked_index(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Jobs that wait for others, in order, without stray entries."""
    return state.blocked_in.get(queue, ())


def blocked_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Jobs that wait for others, as qless lists them."""
    return _merged(state.blocked_in.get(queue, ()), state.qless.stray_entries.depends.get(queue, ()))


def throttled_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Jobs that wait for a throttle, in order."""
    return state.held_in.get(queue, ())


class ListCounts(NamedTuple):
    waiting: int
    running: int  #: with the stalled ones
    stalled: int
    depends: int
    recurring: int
    throttled: int
    scheduled: int
    paused: bool


def list_counts(state: EngineState, name: str, t: float) -> ListCounts:
    """How many jobs each list of a queue has, stray entries included."""
    queue, lazy = state.queues.get(name), state.lazy.queues.get(name)
    waiting = queue.waiting if queue is not None else 0
    running = state.leased_in.get(name, 0)
    depends, recurring, stalled = len(state.blocked_in.get(name, ())), 0, 0
    if lazy is not None:
        recurring = len(lazy.slots) if state.qless.intervals else 0
        if lazy.next_t <= t and lazy.locks.begins_by(t):
            stalled = max(0, lazy.expired(t) - lazy.over(0.0))
    strays = state.qless.stray_entries
    if strays.jobs:
        stalled += sum(lock[0] >= 0 for lock in strays.expired(name, t))
        running += len(strays.locks.get(name, ()))
        waiting += len(strays.work.get(name, ()))
        depends += len(strays.depends.get(name, ()))
    return ListCounts(
        waiting=waiting,
        running=running,
        stalled=stalled,
        depends=depends,
        recurring=recurring,
        throttled=len(state.held_in.get(name, ())),
        scheduled=len(state.scheduled_in.get(name, ())) + len(state.retrying_in.get(name, ())),
        paused=queue is not None and queue.paused,
    )


def queue_length(state: EngineState, name: str) -> int:
    """Waiting, running and scheduled jobs of a queue, stray entries included."""
    queue, strays = state.queues.get(name), state.qless.stray_entries
    scheduled = len(state.scheduled_in.get(name, ())) + len(state.retrying_in.get(name, ()))
    left = len(strays.locks.get(name, ())) + len(strays.work.get(name, ()))
    return state.leased_in.get(name, 0) + scheduled + left + (queue.waiting if queue is not None else 0)


def expired_jobs(state: EngineState, queue: str, t: float, count: int) -> list[Job]:
    """The first jobs whose lease is over by a caller's clock: a pop hands them out before others."""
    lazy = state.lazy.of(queue)
    over: Sequence[ByCaller] = list(lazy.locks.front(min(count, lazy.expired(t))))
    if state.qless.stray_entries.jobs:
        over = sorted([*over, *surfacing.locks(state, queue, t)])[:count]
    return [state.jobs[number] for _, _, number in over]


def next_jobs(state: EngineState, name: str, count: int) -> list[Job]:
    """The first ready jobs, in the order in which a pop takes them."""
    queue = state.queues.get(name)
    if queue is None:
        return []
    strays = surfacing.work(state, name)
    if queue.lanes is None or strays:
        first = _merged(list(queue.ready.front(count)), strays)
        return [state.jobs[sort_key[4]] for sort_key in first[:count]]
    return list(islice(jobs_in_turn(state, queue), max(0, count)))


def _merged(order: Sequence[T], others: Iterable[T]) -> Sequence[T]:
    """An order with entries of another, which are few. The order itself where there are none."""
    entries = list(others)
    return sorted([*order, *entries]) if entries and len(order) <= _MERGED_AT_MOST else order
