"""A job's timeline: past changes, as far as the engine keeps them, and those that time will make.

The engine keeps the last time a job became ready, its lease, and its first and last failure. The lake has the whole
history.
"""

from math import inf
from typing import Any

from crossdock.engine.job_view import qless_data
from crossdock.model.clock import Now
from crossdock.model.job import Job, Lease
from crossdock.model.policies import DEAD_FOR
from crossdock.model.protocol_data import HistoryKind
from crossdock.model.states import State
from crossdock.protocols.timestamps import stamp

_AHEAD = {State.SCHEDULED: "due", State.RETRYING: "next try", State.DEAD: "purged"}


def lease_end(lease: Lease, now: Now) -> float:
    """Wall: when the lease expires, 0 if it has no end. A qless lease expires when its queue is next read for work."""
    at = lease.end if lease.late is None else lease.late
    return now.wall + at - now.steady if at < inf else 0.0


def timeline(job: Job, now: Now) -> list[dict[str, Any]]:
    """Oldest first. `ahead` marks future changes."""
    error = job.extra.error if job.extra is not None else None
    steps = [(job.created, "created", f"through {job.origin}")]
    if job.sort_key is not None or job.attempts:
        steps.append((job.since, "enqueued", f"in {job.queue}"))
    puts = [each for each in (job.extra.history if job.extra is not None else ()) if each.what is HistoryKind.PUT]
    # The first put of a qless job created it. Its time has whole seconds.
    steps += [(max(each.when, job.created), "put", f"in {each.name}") for each in puts[qless_data(job) is not None :]]
    if error is not None:
        if error.first_at != error.at:
            steps.append((error.first_at, "first failed", ""))
        how = "the lease expired" if error.lost else error.text
        steps.append((error.at, "failed", how))
    if job.lease is not None:
        steps.append((job.lease.at, "leased", f"to {job.lease.worker or 'a unnamed worker'} through {job.lease.via}"))
        steps.append((lease_end(job.lease, now), "lease ends", ""))
    if job.state is State.DEAD:
        steps.append((job.due - DEAD_FOR, "died", ""))
    if job.state in _AHEAD:
        steps.append((_due(job, now), _AHEAD[job.state], ""))
    links = job.extra.links if job.extra is not None else None
    if links is not None and links.expires:
        steps.append((links.expires, "expires", "unless it is leased before"))
    if job.end:
        steps.append((now.wall + job.end - now.steady, "ends", "its time to live is over, in any state"))
    steps.sort(key=lambda step: step[0])
    return [
        {"at": stamp(at), "what": what, "note": note, "ahead": at > now.wall}
        for at, what, note in steps
        if 0 < at < inf
    ]


def _due(job: Job, now: Now) -> float:
    """Wall: when the job's timer fires, by the clock that it uses."""
    protocol_data = qless_data(job)
    lazy = protocol_data is not None and protocol_data.due is not None
    if job.state is State.SCHEDULED or lazy or not job.due_steady:
        return job.due
    return now.wall + job.due_steady - now.steady


def history_note(event: dict[str, Any]) -> str:
    """What an event of a job's history in the lake says besides its name."""
    parts = []
    if event.get("to_queue"):
        parts.append(f"to queue {event['to_queue']}")
    elif event["event"] == "pushed":
        parts.append(f"in queue {event.get('queue')}")
    if event.get("why"):
        parts.append(str(event["why"]))
    if event.get("worker"):
        parts.append(f"by {event['worker']}")
    if event.get("via"):
        parts.append(f"through {event['via']}")
    if event.get("error_message") or event.get("error_group"):
        parts.append(f"{event.get('error_group') or 'error'}: {event.get('error_message') or ''}")
    return ", ".join(parts)
