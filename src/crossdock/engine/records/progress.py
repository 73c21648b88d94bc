"""Progress that workers report, leases that it extends (faktory.md section 9.2), and how long it is kept."""

from collections.abc import Iterable
from math import inf

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, FollowUps, later
from crossdock.engine.index import placement
from crossdock.engine.records.links import PROGRESS_S, write_progress
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.admin import ForgetProgress
from crossdock.model.commands.core import FollowUp, SetProgress
from crossdock.model.events import AnyEvent, Expired, ProgressDated, ProgressSet, Renewed

#: A lease is not extended further than this from now.
_RENEW_AT_MOST_S = 86_400.0


def set_progress(state: EngineState, command: SetProgress, now: Now) -> Decision[None]:
    at = later(state, now)
    events: list[AnyEvent] = [ProgressSet(at, command.jid, command.percent, command.text)]
    if command.until:
        end = now.steady + min(command.until - now.wall, _RENEW_AT_MOST_S)
        events += [
            Renewed(at, job.number, job.lease.token, end)
            for job in state.named(command.jid)
            if job.lease is not None and end > job.lease.end
        ]
    return events, None, ()


def progress_set(state: EngineState, follow_ups: FollowUps, event: ProgressSet) -> None:
    write_progress(state, follow_ups, event.jid, event.at, None, event.percent, event.text)


def renewed(state: EngineState, event: Renewed) -> None:
    job = state.jobs[event.number]
    if job.lease is not None:
        lease = job.lease
        placement.remove(state, job)
        lease.end = event.end
        lease.beats += 1
        if event.until is not None or event.late is not None:
            lease.until, lease.late = event.until, event.late
        if event.until is not None:
            state.workers.add_lease(lease.worker, job.jid, event.until)
            data = job.extra.protocol_data if job.extra is not None else None
            if data is not None and (hook := hooks.RENEWED.get(type(data))) is not None:
                hook(state, job, event.until)
        if event.payload is not None:
            job.carry(event.payload)
        placement.insert(state, job)


def date(state: EngineState, touched: Iterable[FollowUp], at: float, now: Now) -> list[ProgressDated]:
    """Set the end of progress that changed since it was last dated."""
    changed: dict[float, list[str]] = {}
    for jid in dict.fromkeys(each.progress for each in touched):
        progress = state.progress.get(jid)
        if progress is not None and progress.until == inf:
            changed.setdefault(progress.keep_s or PROGRESS_S, []).append(jid)
    return [ProgressDated(at, jids, now.steady + kept) for kept, jids in changed.items()]


def progress_dated(state: EngineState, event: ProgressDated) -> None:
    for jid in event.jids:
        state.progress[jid].until = event.end
        state.progress_ends.add((event.end, jid))


def forget_progress(state: EngineState, command: ForgetProgress, now: Now) -> Decision[None]:
    jids = [jid for jid in dict.fromkeys(command.jids) if jid in state.progress]
    end = max((state.progress[jid].until for jid in jids), default=0.0)
    return (Expired(later(state, now), [], [], jids, end),), None, ()


def forget(state: EngineState, event: Expired) -> None:
    """An event of the same tick may have changed some of it."""
    for jid in event.progress:
        until = state.progress[jid].until
        if until <= event.steady:
            del state.progress[jid]
            state.progress_ends.remove((until, jid))
