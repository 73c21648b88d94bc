"""Holds jobs whose throttle is full and frees them when it has room again; sets throttles (qless.md section 10).

A job names its throttles. If one of them is full when the job is put or about to be leased, the job becomes held and
waits for it. When the throttle has room, the jobs that have waited longest become ready.
"""

from collections.abc import Iterable, Sequence
from heapq import merge

from msgspec.structs import replace

from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import dependents, placement
from crossdock.engine.index.sort_keys import stamped
from crossdock.engine.job_view import qless_data, row
from crossdock.engine.qless import history
from crossdock.engine.queries.jobs import newest_job
from crossdock.engine.records import job_history, throttles
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.commands.qless import FreeHeld, FreeThrottle, SetThrottle
from crossdock.model.events import Held, ThrottleFreed, ThrottleSet, Unheld
from crossdock.model.job import Job
from crossdock.model.protocol_data import HistoryKind
from crossdock.model.records import Throttle
from crossdock.model.states import HELD, READY, State, move

_FOR_EVER = float("inf")

#: Jobs that the script frees at a time from a throttle without a maximum.
_FREED_IF_UNLIMITED = 10


def is_held(state: EngineState, event: Held) -> None:
    job = state.jobs[event.number]
    job_state = move(job.state, HELD)
    placement.remove(state, job)
    job.state, job.sort_key = job_state, None
    placement.not_held_by_rate(job)
    throttle = state.throttles.get(event.throttle)
    if throttle is not None:
        throttles.wait(state, throttle, job.jid, event.t)
    protocol_data = qless_data(job)
    if protocol_data is not None:
        again = protocol_data.state == "throttled"
        line = None if again else job_history.entry(HistoryKind.THROTTLED, event.t, job.queue)
        history.write(state, job, replace(protocol_data, state="throttled", held=event.t), line)
    placement.insert(state, job)


def room(
    state: EngineState, freed: Iterable[FollowUp], t: float | None, now: Now
) -> tuple[list[Unheld], tuple[str, ...]]:
    """The events that free held jobs after places of their throttles became free, and the queues of these jobs."""
    events: list[Unheld] = []
    woken: dict[str, None] = {}
    by_name: dict[str, list[FollowUp]] = {}
    for follow_up in freed:
        by_name.setdefault(follow_up.throttle, []).append(follow_up)
    for name, releases in by_name.items():
        throttle = state.throttles.get(name)
        if throttle is None or not throttle.pending:
            continue
        jids, jobs, owed = _next_pending(state, throttle, releases, now)
        if jids:
            at = later(state, now)
            events.append(Unheld(at, name, now.wall if t is None else t, jids, [row(job) for job in jobs], owed))
            woken.update(dict.fromkeys(_leasable_queues(jobs)))
    return events, tuple(woken)


def _leasable_queues(jobs: Iterable[Job]) -> list[str]:
    """The queues in which one of these jobs can be leased once it is freed."""
    return [job.queue for job in jobs if job.state in (HELD, READY)]


def _next_pending(
    state: EngineState, throttle: Throttle, releases: Sequence[FollowUp], now: Now
) -> tuple[list[str], list[Job], int]:
    """The jids to free, their jobs, and how many more can be freed later.

    At every release the script frees as many pending jobs as there are free places, and a freed job takes its place
    only when it is leased. Several releases together therefore free more jobs than there are places; the surplus is
    held again. A pending job that left the throttle in the same command would have been freed by an earlier release: it
    uses up a place, and no other job is freed instead. Jobs beyond `dependents.AT_ONCE` are only counted; `free_held`
    frees them.
    """
    most = throttle.most(now.steady)
    left = {each.left for each in releases if each.left is not None and each.left[1] not in throttle.pending}
    waiting = merge(state.pending[throttle.name], sorted(left))
    jids: list[str] = []
    jobs: list[Job] = []
    owed = 0
    for release in releases:
        left.discard(release.left)
        places = int(most - release.held) if most < _FOR_EVER else _FREED_IF_UNLIMITED
        while places > 0 and len(jids) < dependents.AT_ONCE and (entry := next(waiting, None)) is not None:
            jid = entry[1]
            if jid not in throttle.pending:
                places -= entry in left
                continue
            jids.append(jid)
            job = newest_job(state, jid)
            if job is not None and qless_data(job) is not None:  # the jid of a removed job takes no place
                jobs.append(job)
                places -= 1
        owed += max(0, places)
    return jids, jobs, min(owed, len(throttle.pending) - len(jids))


def free_held(state: EngineState, command: FreeHeld, now: Now) -> Decision[int]:
    """Frees more jobs of the first throttle that had room for more than one command may free. It may have less room by
    now."""
    if not state.owed:
        return (), 0, ()
    name, (owed, t) = next(iter(state.owed.items()))
    throttle = state.throttles.get(name)
    jids: list[str] = []
    jobs: list[Job] = []
    left = 0
    if throttle is not None and throttle.pending:
        room = int(max(0.0, min(owed, throttle.most(now.steady) - len(throttle.holders))))
        jids = [jid for _, jid in state.pending[name].front(min(room, command.limit))]
        jobs = [job for jid in jids if (job := newest_job(state, jid)) is not None and qless_data(job) is not None]
        left = min(room - len(jobs), len(throttle.pending) - len(jids))
    event = Unheld(later(state, now), name, t, jids, [row(job) for job in jobs], left)
    return (event,), len(jids), tuple(dict.fromkeys(_leasable_queues(jobs)))


def unheld(state: EngineState, event: Unheld) -> None:
    if event.owed:
        state.owed[event.name] = event.owed, event.t
    else:
        state.owed.pop(event.name, None)
    throttle = state.throttles.get(event.name)
    if throttle is None:
        return
    for jid in event.jids:
        throttles.wait_no_more(state, throttle, jid)
    for freed in event.rows:
        job = state.jobs[freed.number]
        if job.state not in (HELD, READY):  # it was put elsewhere in the meantime: the script adds a second entry here
            protocol_data = qless_data(job)
            queue = protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue
            if job.state is not State.COMPLETE:
                state.qless.stray_entries.add(work=[(queue, stamped(job, event.t))])
            continue
        job_state = move(job.state, READY)
        placement.remove(state, job)
        job.state, job.since = job_state, event.at
        state.return_queue(job, event.at)
        job.sort_key = stamped(job, event.t)
        placement.insert(state, job)
    throttles.tidy(state, event.name)


def set_throttle(state: EngineState, command: SetThrottle, now: Now) -> Decision[None]:
    known = state.throttles.get(command.name)
    if command.maximum is None:
        if known is None or known.end is None:
            return (), None, ()
        return (ThrottleSet(later(state, now), command.name, 0, None),), None, ()
    end = _FOR_EVER if command.lasts is None else now.steady + command.lasts
    if command.lasts is None and known is not None and known.is_set(now.steady) and known.end is not None:
        end = known.end  # without a new expiry, the key keeps its old one
    return (ThrottleSet(later(state, now), command.name, command.maximum, end),), None, ()


def throttle_set(state: EngineState, event: ThrottleSet) -> None:
    throttle = state.throttles.get(event.name)
    if throttle is None:
        throttle = state.throttles[event.name] = Throttle("", 0, named=event.name)
    throttle.maximum, throttle.end = event.maximum, event.end
    throttles.tidy(state, event.name)


def free_throttle(state: EngineState, command: FreeThrottle, now: Now) -> Decision[None]:
    if command.name not in state.throttles:
        return (), None, ()
    return (ThrottleFreed(later(state, now), command.name, list(command.jids)),), None, ()


def throttle_freed(state: EngineState, follow_ups: FollowUps, event: ThrottleFreed) -> None:
    for jid in event.jids:
        throttles.free(state, follow_ups, event.name, jid)
