"""Time: what falls due by itself, and the start after a recovery.

Shelves are sorted by when their jobs are next due, so looking costs nothing however many wait. What is due is carried
out in slices of `limit` jobs: a flood of due jobs never keeps the doors waiting.

Only schedules and cron go by the wall clock. Whatever is deleted by its age goes by the steady clock, and for an hour
after a restart with a doubtful wall clock not even that moves it (`purge_clock`).
"""

from collections.abc import Collection
from math import inf
from random import Random

from crossdock.engine.decision import Decision, later, purge_clock
from crossdock.engine.index import placement
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import row
from crossdock.engine.jobs import expire
from crossdock.engine.jobs.fail import lapse, stirred_by
from crossdock.engine.jobs.release import last_rows, to_old_place
from crossdock.engine.qless import history
from crossdock.engine.records import batches as records_batches
from crossdock.engine.records import links, progress, schedules, throttles
from crossdock.engine.resqu import batches as resqu_batches
from crossdock.engine.resqu import mapping, unique_ids
from crossdock.engine.state import EngineState
from crossdock.model.clock import PURGE_HOLD_S, Now
from crossdock.model.commands.core import Start, Tick, Ticked
from crossdock.model.events import AnyEvent, Expired, JobRow, LoadClosed, Readied, Removed, Spawned, Started
from crossdock.model.events.keyspace import KeysDropped
from crossdock.model.job import Job, LeaseBinding, Number
from crossdock.model.policies import DEAD_FOR
from crossdock.model.states import DEAD, LEASED, RETRYING, SCHEDULED, State


def due_in(memory: EngineState, now: Now) -> float | None:
    """Seconds until something is due (0: it is already), None while nothing waits for time."""
    shelves = memory.shelves
    wall = [each.first()[0] for each in (shelves[SCHEDULED], memory.recurring) if each]
    steady = [each.first()[0] for each in (shelves[LEASED], shelves[RETRYING], memory.lock_ends) if each]
    kept = (shelves[DEAD], memory.job_ends, memory.group_ends, memory.track_ends, memory.resqu.stage_ends)
    if any(kept):
        end = min([each.first()[0] for each in kept if each])
        steady.append(end if memory.counters.held_until <= now.steady else _purged_at(memory, end, now))
    if memory.loads.ends:
        steady.append(memory.loads.ends.first()[0])
    if memory.keys.ends:
        steady.append(memory.keys.ends.first()[0])
    if memory.throttles:
        steady.append(throttles.next_end(memory))
    if memory.unresolved or memory.owed or mapping.waits(memory):
        return 0.0
    waits = [*(due - now.wall for due in wall), *(due - now.steady for due in steady)]
    wait = min(waits, default=inf)
    return max(0.0, wait) if wait < inf else None


def _purged_at(memory: EngineState, end: float, now: Now) -> float:
    """Steady: when what ends then is purged."""
    return end if end <= purge_clock(memory, now) else max(end, memory.counters.held_until)


def _names(
    order: SortedList[tuple[float, str]] | SortedList[tuple[float, Number, str]], until: float, limit: int
) -> list[str]:
    names: list[str] = []
    for end, *_, name in order.front(limit):
        if end > until:
            break
        names.append(name)
    return names


def _due(memory: EngineState, state: State, until: float, limit: int, ended: Collection[Number]) -> list[Job]:
    shelf = memory.shelves[state]
    jobs: list[Job] = []
    for due, number in shelf.front(limit + len(ended)):
        if due > until or len(jobs) >= limit:
            break
        if number not in ended:
            jobs.append(memory.jobs[number])
    return jobs


def tick(memory: EngineState, command: Tick, now: Now, random: Random) -> Decision[Ticked]:
    at, purge = later(memory, now), purge_clock(memory, now)
    left = command.limit
    events: list[AnyEvent] = []
    stirred: dict[str, None] = {}
    ended = expire.over(memory, purge, left)
    if ended:
        events.append(Removed(at, "ttl", "", last_rows(ended, at)))
        stirred.update((job.queue, None) for job in ended if memory.throttles and job.lease is not None)
    left -= len(ended)
    over = {job.number for job in ended}
    readied: dict[State, int] = {}
    for state, until in ((SCHEDULED, now.wall), (RETRYING, now.steady)):
        jobs = _due(memory, state, until, left, over)
        if jobs:
            begun = expire.readied(jobs, now, command.looked)
            events.append(Readied(at, "due", "", [row(job) for job in jobs], begun))
            stirred.update((job.queue, None) for job in jobs)
        readied[state] = len(jobs)
        left -= len(jobs)
    lapsed = _due(memory, LEASED, now.steady, left, over)
    for job in lapsed:
        event = lapse(memory, job, now, random)
        events.append(event)
        stirred.update((queue, None) for queue in stirred_by(event, job))
    left -= len(lapsed)
    purged = _due(memory, DEAD, purge, left, over)
    if purged:
        events.append(Removed(at, "purged", "", [row(job) for job in purged]))
    left -= len(purged)
    runs = schedules.spawn(memory, _names(memory.recurring, now.wall, left), command.room, now, random)
    events += runs
    spawned = [each for each in runs if isinstance(each, Spawned)]
    stirred.update((each.spec.queue, None) for each in spawned)
    left -= len(spawned)
    left = max(0, left - _forget(memory, at, now, left, events, stirred))  # each kind may take the whole slice
    left = max(0, left - _resqu(memory, now, left, events, stirred))
    idle = _names(memory.loads.ends, now.steady, left)
    events += [LoadClosed(at, run, idle=True) for run in idle]
    left -= len(idle)
    keys = memory.keys.over(now.steady, left)
    if keys:
        events.append(KeysDropped(at, keys))
        left -= len(keys)
    done = Ticked(
        readied[SCHEDULED],
        readied[RETRYING],
        len(lapsed),
        len(purged),
        len(spawned),
        left <= 0,
        ended=len(ended),
    )
    return events, done, tuple(stirred)


def _forget(
    memory: EngineState, at: float, now: Now, limit: int, events: list[AnyEvent], stirred: dict[str, None]
) -> int:
    """Locks, groups, tracks and places in a throttle whose time is over."""
    purge = purge_clock(memory, now)
    names = (
        _names(memory.lock_ends, now.steady, limit),
        _names(memory.group_ends, purge, limit),
        _names(memory.track_ends, purge, limit),
    )
    holders = throttles.over(memory, now.steady, limit)
    if any(names) or holders:
        events.append(Expired(at, *names, now.steady, holders))
        stirred.update((queue, None) for queue, _ in holders)
    return sum(map(len, names)) + len(holders)


def _resqu(memory: EngineState, now: Now, limit: int, events: list[AnyEvent], stirred: dict[str, None]) -> int:
    """Batches that were abandoned; jobs whose pool is known by now."""
    if not memory.resqu.stages and not memory.resqu.mapping.static:
        return 0
    abandoned, done = resqu_batches.abandon(memory, now, purge_clock(memory, now), limit)
    assigned = mapping.assign(memory, now, limit - done)
    events += [*abandoned, *assigned]
    stirred.update((each.queue, None) for each in assigned)
    return done + sum(len(each.rows) for each in assigned)


def expired(memory: EngineState, event: Expired) -> None:
    """An event of the same tick may have given one of them a new end."""
    for name in event.locks:
        if name in memory.locks and memory.locks[name].end <= event.steady:
            links.free(memory, name)
    records_batches.forget(memory, event.groups)
    throttles.time_over(memory, event.holders)
    progress.forget(memory, event)


def start(memory: EngineState, command: Start, now: Now) -> Decision[None]:
    at = later(memory, now)
    fallen = [job for _, number in memory.shelves[LEASED] if _falls_back(job := memory.jobs[number])]
    counters = memory.counters
    started = Started(at, counters.epoch + 1, now.steady, last_rows(fallen, at), command.boot, command.offset)
    if command.hold_at is not None:
        started.held_at, started.held_until = min(purge_clock(memory, now), command.hold_at), now.steady + PURGE_HOLD_S
    elif now.steady < counters.held_until:  # a restart does not end it
        started.held_at, started.held_until = counters.held_at, counters.held_until
    events: list[AnyEvent] = [started]
    if memory.foreground:
        events.append(Removed(at, "restarted", "", _after_start(memory, at)))
    return events, None, ()


def _after_start(memory: EngineState, at: float) -> list[JobRow]:
    """The foreground jobs, each with its lease; one bound to a connection has fallen back with the start."""
    jobs = [memory.jobs[number] for number in memory.foreground]
    return [row(job) if _falls_back(job) else last_rows([job], at)[0] for job in jobs]


def _falls_back(job: Job) -> bool:
    return job.lease is not None and job.lease.bound is LeaseBinding.CONNECTION


def started(memory: EngineState, event: Started) -> None:
    counters = memory.counters
    counters.epoch = event.epoch
    counters.first_token = counters.token + 1
    counters.evicted = 0
    counters.boot, counters.offset = event.boot, event.offset
    counters.held_at, counters.held_until = event.held_at, event.held_until
    _date(memory, event)
    for job in [memory.jobs[number] for _, number in memory.shelves[LEASED]]:
        if not _falls_back(job):
            continue
        job.attempts -= 1
        if job.extra is not None and job.lease is not None:
            history.returned(memory, job, job.lease)
        to_old_place(memory, job, event.steady)
    unique_ids.started(memory)
    progress.keep(memory, progress.undated(memory), event.steady + links.TRACK_S)


def _date(memory: EngineState, event: Started) -> None:
    """Give retrying and dead jobs of an older journal their time on the steady clock. How much of it has passed is not
    known for certain: a dead one is kept for the whole of it."""
    for state in (RETRYING, DEAD):
        for job in [memory.jobs[number] for _, number in memory.shelves[state].irange((inf, 0))]:
            if not job.due_steady:
                left = max(0.0, job.due - event.at) if state is RETRYING else DEAD_FOR
                placement.displace(memory, job)
                job.due_steady = event.steady + left
                placement.place(memory, job)
