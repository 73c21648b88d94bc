"""Progress that a worker reports, leases it extends (Faktory TRACK, protocol page 9.2), and how long it is known."""

from collections.abc import Iterable, Sequence
from math import inf

from crossdock.engine import hooks
from crossdock.engine.decision import Decision, later
from crossdock.engine.index import placement
from crossdock.engine.records.links import TRACK_S, note
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp, SetProgress
from crossdock.model.events import AnyEvent, Expired, ProgressDated, ProgressSet, Renewed

#: A lease is not extended further than this from now.
_RENEW_AT_MOST_S = 86_400.0


def set_track(state: EngineState, command: SetProgress, now: Now) -> Decision[None]:
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


def progress_set(state: EngineState, event: ProgressSet) -> None:
    note(state, event.jid, event.at, None, event.percent, event.text)


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
            state.workers.give(lease.worker, job.jid, event.until)
            data = job.extra.protocol_data if job.extra is not None else None
            if data is not None and (hook := hooks.RENEWED.get(type(data))) is not None:
                hook(state, job, event.until)
        if event.payload is not None:
            job.carry(event.payload)
        placement.insert(state, job)


def date(state: EngineState, touched: Iterable[FollowUp], at: float, now: Now) -> list[ProgressDated]:
    """Those of these tracks that changed since they were dated last, by how long they are kept."""
    changed: dict[float, list[str]] = {}
    for jid in dict.fromkeys(each.track for each in touched):
        track = state.progress.get(jid)
        if track is not None and track.until == inf:
            changed.setdefault(track.keep_s or TRACK_S, []).append(jid)
    return [ProgressDated(at, jids, now.steady + kept) for kept, jids in changed.items()]


def tracks_dated(state: EngineState, event: ProgressDated) -> None:
    keep(state, event.jids, event.end)


def keep(state: EngineState, jids: Sequence[str], until: float) -> None:
    for jid in jids:
        state.progress[jid].until = until
        state.progress_ends.add((until, jid))


def undated(state: EngineState) -> list[str]:
    """What a journal from before tracks were dated has left."""
    return [jid for jid, track in state.progress.items() if track.until == inf]


def forget(state: EngineState, event: Expired) -> None:
    """An event of the same tick may have changed one of them."""
    for jid in event.progress:
        track = state.progress[jid]
        if track.until == inf:
            if track.end <= event.at:
                del state.progress[jid]
        elif track.until <= event.steady:
            del state.progress[jid]
            state.progress_ends.remove((track.until, jid))
