"""Timers: what is due by time alone, and the start after a recovery.

Indexes are sorted by due time, so a look costs the same however many jobs wait. Due work is done in slices of
`limit` jobs, so very many due jobs do not block clients.

Only schedules and cron use the wall clock. Whatever is deleted by age uses the steady clock. For an hour after a
restart with a doubtful wall clock, nothing is purged (`purge_clock`).
"""

from collections.abc import Collection
from math import inf
from random import Random

from crossdock.engine.decision import Decision, FollowUps, later, purge_clock
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import pushed_at, row
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.fail import expire_lease, queues_woken_by
from crossdock.engine.jobs.release import last_rows, undo_lease
from crossdock.engine.records import batches as records_batches
from crossdock.engine.records import links, outcomes, progress, rates, schedules, throttles
from crossdock.engine.resqu import batches as resqu_batches
from crossdock.engine.resqu import mapping
from crossdock.engine.state import EngineState
from crossdock.model.clock import PURGE_HOLD_S, Now
from crossdock.model.commands.core import Start, Tick, Ticked
from crossdock.model.events import AnyEvent, Expired, JobRow, LoadClosed, Readied, Removed, Spawned, Started
from crossdock.model.events.keyspace import KeysDropped
from crossdock.model.job import Job, LeaseBinding, Number
from crossdock.model.states import DEAD, LEASED, RETRYING, SCHEDULED, State


def due_in(state: EngineState, now: Now) -> float | None:
    """Seconds until something is due (0: it is due now). None if nothing waits for time."""
    by_state = state.by_state
    wall = [each.first()[0] for each in (by_state[SCHEDULED], state.next_runs) if each]
    steady = [each.first()[0] for each in (by_state[LEASED], by_state[RETRYING], state.lock_ends) if each]
    kept = (
        by_state[DEAD],
        state.job_ends,
        state.batch_ends,
        state.progress_ends,
        state.outcome_ends,
        state.resqu.batch_ends,
    )
    if any(kept):
        end = min([each.first()[0] for each in kept if each])
        steady.append(end if state.counters.held_until <= now.steady else _purged_at(state, end, now))
    if state.loads.ends:
        steady.append(state.loads.ends.first()[0])
    if state.keys.ends:
        steady.append(state.keys.ends.first()[0])
    if state.throttles:
        steady.append(throttles.next_end(state))
    if state.rate_index.wakes:
        steady.append(state.rate_index.wakes.first()[0])
    if state.unresolved or state.owed or (state.resqu.mapping.static and mapping.waits(state)):
        return 0.0
    waits = [*(due - now.wall for due in wall), *(due - now.steady for due in steady)]
    wait = min(waits, default=inf)
    return max(0.0, wait) if wait < inf else None


def _purged_at(state: EngineState, end: float, now: Now) -> float:
    """Steady: when something that ends then is purged."""
    return end if end <= purge_clock(state, now) else max(end, state.counters.held_until)


def _names(
    order: SortedList[tuple[float, str]] | SortedList[tuple[float, Number, str]], until: float, limit: int
) -> list[str]:
    names: list[str] = []
    for end, *_, name in order.front(limit):
        if end > until:
            break
        names.append(name)
    return names


def _due(state: EngineState, job_state: State, until: float, limit: int, ended: Collection[Number]) -> list[Job]:
    shelf = state.by_state[job_state]
    jobs: list[Job] = []
    for due, number in shelf.front(limit + len(ended)):
        if due > until or len(jobs) >= limit:
            break
        if number not in ended:
            jobs.append(state.jobs[number])
    return jobs


def tick(state: EngineState, command: Tick, now: Now, random: Random) -> Decision[Ticked]:
    at, purge = later(state, now), purge_clock(state, now)
    left = command.limit
    events: list[AnyEvent] = []
    woken: dict[str, None] = {}
    ended = expire.over(state, purge, left)
    if ended:
        events.append(Removed(at, "ttl", "", last_rows(ended, at)))
        woken.update((job.queue, None) for job in ended if state.throttles and job.lease is not None)
    left -= len(ended)
    over = {job.number for job in ended}
    readied: dict[State, int] = {}
    for job_state, until in ((SCHEDULED, now.wall), (RETRYING, now.steady)):
        jobs = _due(state, job_state, until, left, over)
        if jobs:
            begun = expire.readied(jobs, now, command.looked)
            events.append(Readied(at, "due", "", [row(job) for job in jobs], begun))
            woken.update((job.queue, None) for job in jobs)
        readied[job_state] = len(jobs)
        left -= len(jobs)
    expired_jobs = _due(state, LEASED, now.steady, left, over)
    for job in expired_jobs:
        event = expire_lease(state, job, now, random)
        events.append(event)
        woken.update((queue, None) for queue in queues_woken_by(event, job))
    left -= len(expired_jobs)
    purged = _due(state, DEAD, purge, left, over)
    if purged:
        events.append(Removed(at, "purged", "", last_rows(purged, at)))
    left -= len(purged)
    runs = schedules.spawn(state, _names(state.next_runs, now.wall, left), command.room, now, random)
    events += runs
    spawned = [each for each in runs if isinstance(each, Spawned)]
    woken.update((each.spec.queue, None) for each in spawned)
    left -= len(spawned)
    left = max(0, left - _forget(state, at, now, left, events, woken))  # each kind may use the whole slice
    left = max(0, left - _resqu(state, now, left, events, woken))
    if state.rate_index.wakes.begins_by(now.steady) and left > 0:
        opened, queues = rates.open_due(state, now, left, over)
        events.append(opened)
        woken.update(dict.fromkeys(queues))
        left -= len(opened.rows)
    idle = _names(state.loads.ends, now.steady, left)
    events += [LoadClosed(at, run, idle=True) for run in idle]
    left -= len(idle)
    keys = state.keys.over(now.steady, left)
    if keys:
        events.append(KeysDropped(at, keys))
        left -= len(keys)
    done = Ticked(
        scheduled=readied[SCHEDULED],
        retried=readied[RETRYING],
        expired=len(expired_jobs),
        purged=len(purged),
        spawned=len(spawned),
        more=left <= 0,
        ended=len(ended),
    )
    return events, done, tuple(woken)


def _forget(state: EngineState, at: float, now: Now, limit: int, events: list[AnyEvent], woken: dict[str, None]) -> int:
    """Locks, batches, progress, places in throttles and outcomes whose time is over."""
    purge = purge_clock(state, now)
    names = (
        _names(state.lock_ends, now.steady, limit),
        _names(state.batch_ends, purge, limit),
        _names(state.progress_ends, purge, limit),
    )
    holders = throttles.over(state, now.steady, limit)
    ended = _names(state.outcome_ends, purge, limit)
    if any(names) or holders or ended:
        events.append(Expired(at, *names, now.steady, holders, ended))
        woken.update((queue, None) for queue, _ in holders)
    return sum(map(len, names)) + len(holders) + len(ended)


def _resqu(state: EngineState, now: Now, limit: int, events: list[AnyEvent], woken: dict[str, None]) -> int:
    """Resqu batches that are abandoned, and jobs whose pool is known by now."""
    if not state.resqu.batches and not state.resqu.mapping.static:
        return 0
    abandoned, done = resqu_batches.abandon(state, now, purge_clock(state, now), limit)
    assigned = mapping.assign(state, now, limit - done)
    events += [*abandoned, *assigned]
    woken.update((each.queue, None) for each in assigned)
    return done + sum(len(each.rows) for each in assigned)


def expired(state: EngineState, follow_ups: FollowUps, event: Expired) -> None:
    """An event of the same tick may have given a record a new end."""
    for name in event.locks:
        if name in state.locks and state.locks[name].end <= event.steady:
            links.free(state, follow_ups, name)
    records_batches.forget(state, follow_ups, event.batches)
    throttles.time_over(state, follow_ups, event.holders)
    progress.forget(state, event)
    outcomes.expired(state, event)


def start(state: EngineState, command: Start, now: Now) -> Decision[None]:
    at = later(state, now)
    fallen = [job for _, number in state.by_state[LEASED] if _falls_back(job := state.jobs[number])]
    counters = state.counters
    started = Started(
        at,
        epoch=counters.epoch + 1,
        steady=now.steady,
        rows=last_rows(fallen, at),
        boot=command.boot,
        offset=command.offset,
    )
    if command.hold_at is not None:
        started.held_at, started.held_until = min(purge_clock(state, now), command.hold_at), now.steady + PURGE_HOLD_S
    elif now.steady < counters.held_until:  # a restart does not end it
        started.held_at, started.held_until = counters.held_at, counters.held_until
    events: list[AnyEvent] = [started]
    if state.foreground:
        events.append(Removed(at, "restarted", "", _after_start(state, at)))
    return events, None, ()


def _after_start(state: EngineState, at: float) -> list[JobRow]:
    """The foreground jobs, with their leases. The start gives back leases that are bound to a connection."""
    jobs = [state.jobs[number] for number in state.foreground]
    return [row(job, None, pushed_at(job)) if _falls_back(job) else last_rows([job], at)[0] for job in jobs]


def _falls_back(job: Job) -> bool:
    return job.lease is not None and job.lease.bound is LeaseBinding.CONNECTION


def started(state: EngineState, follow_ups: FollowUps, event: Started) -> None:
    counters = state.counters
    counters.epoch = event.epoch
    counters.first_token = counters.token + 1
    counters.evicted = 0
    counters.boot, counters.offset = event.boot, event.offset
    counters.held_at, counters.held_until = event.held_at, event.held_until
    for job in [state.jobs[number] for _, number in state.by_state[LEASED]]:
        if _falls_back(job):
            undo_lease(state, follow_ups, job, event.steady)
