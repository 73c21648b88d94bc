"""Jobs held by a throttle that is full, and what frees them (protocol page, qless 10).

A job names its throttles. One that finds a full one when it is about to be leased, or is put, leaves the ready ones and
waits for that throttle; when there is room again, those who waited longest are ready once more.
"""

from collections.abc import Iterable, Sequence
from heapq import merge

from msgspec.structs import replace

from crossdock.engine.decision import Decision, later
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

#: Of a throttle without a maximum so many are freed at a time, as the script does.
_AT_ONCE = 10


def is_held(state: EngineState, event: Held) -> None:
    job = state.jobs[event.number]
    job_state = move(job.state, HELD)
    placement.remove(state, job)
    job.state, job.sort_key = job_state, None
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
    """Those who need not wait any more, and their queues."""
    events: list[Unheld] = []
    woken: dict[str, None] = {}
    by_name: dict[str, list[FollowUp]] = {}
    for each in freed:
        by_name.setdefault(each.throttle, []).append(each)
    for name, ends in by_name.items():
        throttle = state.throttles.get(name)
        if throttle is None or not throttle.pending:
            continue
        jids, jobs, owed = _called(state, throttle, ends, now)
        if jids:
            at = later(state, now)
            events.append(Unheld(at, name, now.wall if t is None else t, jids, [row(job) for job in jobs], owed))
            woken.update(dict.fromkeys(_queues(jobs)))
    return events, tuple(woken)


def _queues(jobs: Iterable[Job]) -> list[str]:
    """In which one of them may be leased now."""
    return [job.queue for job in jobs if job.state in (HELD, READY)]


def _called(
    state: EngineState, throttle: Throttle, ends: Sequence[FollowUp], now: Now
) -> tuple[list[str], list[Job], int]:
    """Who waited for longest when each of the places was free. The script calls as many as there is room for at every
    end, and whom it calls has no place yet: where several end together it calls some more, who may have to wait again.
    One of those that ended may have been called before: nobody is called in its stead. Beyond `dependents.AT_ONCE` they
    are counted only, and called by `free_held`."""
    most = throttle.most(now.steady)
    left = {each.left for each in ends if each.left is not None and each.left[1] not in throttle.pending}
    waiting = merge(state.pending[throttle.name], sorted(left))
    jids: list[str] = []
    jobs: list[Job] = []
    owed = 0
    for end in ends:
        left.discard(end.left)
        places = int(most - end.held) if most < _FOR_EVER else _AT_ONCE
        while places > 0 and len(jids) < dependents.AT_ONCE and (one := next(waiting, None)) is not None:
            jid = one[1]
            if jid not in throttle.pending:
                places -= one in left
                continue
            jids.append(jid)
            job = newest_job(state, jid)
            if job is not None and qless_data(job) is not None:  # who is gone takes nobody's place
                jobs.append(job)
                places -= 1
        owed += max(0, places)
    return jids, jobs, min(owed, len(throttle.pending) - len(jids))


def free_held(state: EngineState, command: FreeHeld, now: Now) -> Decision[int]:
    """Of the first throttle that had room for more than one command could free. It may have less room by now."""
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
    return (event,), len(jids), tuple(dict.fromkeys(_queues(jobs)))


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
    for each in event.rows:
        job = state.jobs[each.number]
        if job.state not in (HELD, READY):  # it was put elsewhere meanwhile: the script leaves it there, and here
            protocol_data = qless_data(job)
            queue = protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue
            if job.state is not State.COMPLETE:
                state.qless.stray_entries.add(work=[(queue, stamped(job, event.t))])
            continue
        job_state = move(job.state, READY)
        placement.remove(state, job)
        job.state, job.since = job_state, event.at
        state.stand_in(job, event.at)
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
        end = known.end  # the key's own time goes on
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


def throttle_freed(state: EngineState, event: ThrottleFreed) -> None:
    for jid in event.jids:
        throttles.free(state, event.name, jid)
