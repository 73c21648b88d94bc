"""Reads for the qless protocol and for the admin view of it: settings, tracked jobs, tags, throttles, statistics, and
the lists of a queue by callers' clocks. They change nothing."""

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

#: A longer list is returned without stray entries, because merging them would sort the whole list.
_MERGED_AT_MOST: Final = 10_000

_HEARTBEAT_S: Final = 60.0


def settings(state: EngineState) -> Mapping[str, str]:
    return state.qless.config


def setting(state: EngineState, option: str, default: float) -> float:
    """A setting that is a number."""
    return number_setting(state, option, default)


def heartbeat(state: EngineState, queue: str) -> float:
    """Seconds that a lease from this queue lasts. Clients name the option `<queue>-heartbeat`; the original protocol
    document names it `heartbeat-<queue>` (qless.md section 0)."""
    if not state.qless.config:
        return _HEARTBEAT_S
    for option in (f"{queue}-heartbeat", f"heartbeat-{queue}"):
        if option in state.qless.config:
            return number_setting(state, option, _HEARTBEAT_S)
    return number_setting(state, "heartbeat", _HEARTBEAT_S)


# Tracked jobs and tags.


def tracked_jids(state: EngineState) -> Mapping[str, float]:
    """Tracked jids with the time tracking began. The job need not exist."""
    return state.qless.watched


def is_tracked(state: EngineState, jid: str) -> bool:
    return jid in state.qless.watched


def tracked_and_dependents(state: EngineState, job: Job) -> tuple[bool, Mapping[Number, None] | None]:
    """Whether a job is tracked, and the numbers of its dependents, if it has any. Each job of a pop needs both."""
    return job.jid in state.qless.watched, state.dependents.get(job.number) if state.dependents else None


def jobs_by_tag(state: EngineState) -> Mapping[str, SortedList[ByCaller]]:
    """By tag: the time a job was tagged, its jid and its number, in order."""
    return state.tags.jobs


def tagged(state: EngineState, tag: str) -> Sequence[ByCaller]:
    return state.tags.jobs.get(tag, ())


def tagged_since(state: EngineState, tag: str, job: Job) -> float:
    """When a job got one of its tags."""
    return state.tags.since[tag][job.number]


def tag_uses(state: EngineState) -> Mapping[str, int]:
    """By tag: how often it was added, less how often it was removed."""
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
    """The jids that wait for this throttle with the time they began to, in order."""
    return state.pending.get(throttle, ())


def stats_of_day(state: EngineState, queue: str, day: int) -> QueueDay | None:
    """Statistics of a queue for the UTC day that begins at the second `day`."""
    return state.stats.page(queue, day)


def stats_by_queue(state: EngineState) -> Mapping[str, Mapping[int, QueueDay]]:
    """Statistics by queue, then by the first second of a UTC day."""
    return state.stats.days


# Lists of completed and failed jobs. A job that a recurring job overwrote may still be listed (`StaleListings`).


def completed_index(state: EngineState) -> SortedList[ByCaller]:
    """Completed jobs in order, without stale listings."""
    return state.qless.completed


def completed_list(state: EngineState) -> Sequence[ByCaller]:
    """Completed jobs in order, with stale listings."""
    return _merged(state.qless.completed, state.qless.stale_listings.done)


def failed_groups(state: EngineState) -> Mapping[str, SortedList[tuple[int, Number]]]:
    """By group: order and number of failed qless jobs, without stale listings."""
    return state.qless.failed_in


def failed_counts(state: EngineState) -> Counter[str]:
    """By group: how many failed jobs are listed, with stale listings."""
    counts = Counter({name: len(order) for name, order in state.qless.failed_in.items()})
    counts.update(name for name, _, _ in state.qless.stale_listings.failed)
    return counts


def failed_list(state: EngineState, group: str) -> Sequence[tuple[int, Number]]:
    """Order and number of the failed jobs of a group, with stale listings."""
    stale = [(order, number) for name, order, number in state.qless.stale_listings.failed if name == group]
    return _merged(state.qless.failed_in.get(group, ()), stale)


def lists_failures_of(state: EngineState, group: str) -> bool:
    return group in state.qless.failed_in or any(name == group for name, _, _ in state.qless.stale_listings.failed)


# Lists of a queue. They may contain entries of jobs that are elsewhere (`StrayEntries`).


def queue_names(state: EngineState) -> Iterable[str]:
    """All queues that have jobs or recurring jobs. Safe to keep while the state changes."""
    known = {**state.queues, **state.leased_in, **state.lazy.queues, **state.blocked_in, **state.held_in}
    return dict.fromkeys((*known, *state.scheduled_in, *state.retrying_in))


def locks_index(state: EngineState, queue: str) -> SortedList[ByCaller]:
    """Leases with an expiry by callers' clocks, in order, without stray entries."""
    return state.lazy.of(queue).locks


def locks_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Leases with an expiry by callers' clocks, in order, with stray entries."""
    return _merged(state.lazy.of(queue).locks, state.qless.stray_entries.locks.get(queue, ()))


def ends_before(locks: Sequence[ByCaller], t: float) -> int:
    """How many locks of a list expire before `t`."""
    return _rank(locks, (t, "", 0))


def ends_by(locks: Sequence[ByCaller], t: float) -> int:
    """How many locks of a list expire at or before `t`."""
    return _rank(locks, (nextafter(t, inf), "", 0))


def _rank(order: Sequence[T], entry: T) -> int:
    return order.bisect_left(entry) if isinstance(order, SortedList) else bisect_left(order, entry)


def unlisted_lease_count(state: EngineState, queue: str) -> int:
    """How many leases of a queue have no expiry by callers' clocks. They were made through other protocols."""
    return state.leased_in.get(queue, 0) - len(state.lazy.of(queue).locks)


def due_index(state: EngineState, queue: str) -> SortedList[ByCaller]:
    """Jobs scheduled by callers' clocks, in order of their due time."""
    return state.lazy.of(queue).due


def has_due(state: EngineState, queue: str, t: float) -> bool:
    """Whether a job of `due_index` is due at `t`."""
    lazy = state.lazy.queues.get(queue)
    return lazy is not None and lazy.due.begins_by(t)


def recurring_times(state: EngineState, queue: str) -> IntervalTimes:
    """The next times of the recurring jobs of a queue."""
    return state.lazy.of(queue).slots


def recurring_list(state: EngineState, queue: str) -> Sequence[tuple[float, str]]:
    """The next times and jids of the recurring jobs of a queue, each by the clock it follows."""
    times = state.lazy.of(queue).slots
    return _merged(times.callers, times.own)


def blocked_index(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Blocked jobs in order, without stray entries."""
    return state.blocked_in.get(queue, ())


def blocked_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Blocked jobs in order, with stray entries."""
    return _merged(state.blocked_in.get(queue, ()), state.qless.stray_entries.depends.get(queue, ()))


def throttled_list(state: EngineState, queue: str) -> Sequence[ByCaller]:
    """Jobs held by a throttle, in order."""
    return state.held_in.get(queue, ())


class ListCounts(NamedTuple):
    waiting: int
    running: int  #: includes the stalled ones
    stalled: int
    depends: int
    recurring: int
    throttled: int
    scheduled: int
    paused: bool


def list_counts(state: EngineState, name: str, t: float) -> ListCounts:
    """The length of each list of a queue, with stray entries."""
    queue, lazy = state.queues.get(name), state.lazy.queues.get(name)
    waiting = queue.waiting if queue is not None else 0
    running = state.leased_in.get(name, 0)
    depends, recurring, stalled = len(state.blocked_in.get(name, ())), 0, 0
    if lazy is not None:
        recurring = len(lazy.slots) if state.qless.intervals else 0
        if lazy.locks.begins_by(t):
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
    """Waiting, running and scheduled jobs of a queue, with stray entries."""
    queue, strays = state.queues.get(name), state.qless.stray_entries
    scheduled = len(state.scheduled_in.get(name, ())) + len(state.retrying_in.get(name, ()))
    stray = len(strays.locks.get(name, ())) + len(strays.work.get(name, ()))
    return state.leased_in.get(name, 0) + scheduled + stray + (queue.waiting if queue is not None else 0)


def expired_jobs(state: EngineState, queue: str, t: float, count: int) -> list[Job]:
    """The first jobs whose lease has expired by the caller's clock. A pop leases them before others."""
    lazy = state.lazy.of(queue)
    expired: Sequence[ByCaller] = list(lazy.locks.front(min(count, lazy.expired(t))))
    if state.qless.stray_entries.jobs:
        expired = sorted([*expired, *surfacing.expired_locks(state, queue, t)])[:count]
    return [state.jobs[number] for _, _, number in expired]


def next_jobs(state: EngineState, name: str, count: int) -> list[Job]:
    """The first ready jobs, in the order in which a pop takes them."""
    queue = state.queues.get(name)
    if queue is None:
        return []
    strays = surfacing.work_entries(state, name)
    if queue.lanes is None or strays:
        first = _merged(list(queue.ready.front(count)), strays)
        return [state.jobs[sort_key[4]] for sort_key in first[:count]]
    return list(islice(jobs_in_turn(state, queue), max(0, count)))


def _merged(order: Sequence[T], others: Iterable[T]) -> Sequence[T]:
    """A sorted list with a few other entries merged in; the list itself if there are none."""
    entries = list(others)
    return sorted([*order, *entries]) if entries and len(order) <= _MERGED_AT_MOST else order
