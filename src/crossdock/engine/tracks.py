"""Progress that a worker reports, and leases it extends (Faktory TRACK, protocol page 9.2)."""

from crossdock.engine.decision import Decision, later
from crossdock.engine.links import note
from crossdock.engine.memory import Memory
from crossdock.model.clock import Now
from crossdock.model.commands import SetTrack
from crossdock.model.events import AnyEvent, Renewed, Tracked

#: A lease is not extended further than this from now.
_RENEW_AT_MOST_S = 86_400.0


def set_track(memory: Memory, command: SetTrack, now: Now) -> Decision[None]:
    at = later(memory, now)
    events: list[AnyEvent] = [Tracked(at, command.jid, command.percent, command.text)]
    if command.until:
        end = now.steady + min(command.until - now.wall, _RENEW_AT_MOST_S)
        events += [
            Renewed(at, job.number, job.lease.token, end)
            for job in memory.named(command.jid)
            if job.lease is not None and end > job.lease.end
        ]
    return events, None, ()


def tracked(memory: Memory, event: Tracked) -> None:
    note(memory, event.jid, event.at, None, event.percent, event.text)


def renewed(memory: Memory, event: Renewed) -> None:
    job = memory.jobs[event.number]
    if job.lease is not None:
        memory.displace(job)
        job.lease.end = event.end
        job.lease.beats += 1
        memory.place(job)
