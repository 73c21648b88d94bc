"""A job as `inspect` shows it (page 5.8), of whatever door; and its result, if it has ended."""

from typing import Final

from crossdock.model.job import Job, WorkqData
from crossdock.model.states import State
from crossdock.protocols.payload import as_bytes
from crossdock.protocols.workq import ids
from crossdock.protocols.workq.job import HIGHEST, LEASE_S, LOWEST, TRIES
from crossdock.protocols.workq.timestamps import stamp
from crossdock.protocols.workq.words import spelled

_NEW, _COMPLETED, _FAILED, _PENDING, _LEASED = range(5)

#: Where attempts do not tell the difference: one that was tried before, or failed without, is pending and not new.
_STATES: Final = {
    State.LEASED: _LEASED,
    State.RETRYING: _PENDING,
    State.COMPLETE: _COMPLETED,
    State.FAILED: _FAILED,
    State.DEAD: _FAILED,
}


def record(job: Job) -> bytes:
    policy, payload = job.policy, as_bytes(job)
    protocol_data = (
        job.extra.protocol_data if job.extra is not None and isinstance(job.extra.protocol_data, WorkqData) else None
    )
    time = protocol_data.time if protocol_data is not None else job.due if job.state is State.SCHEDULED else 0.0
    state = _STATES.get(job.state, _PENDING if job.attempts or job.failures else _NEW)
    fails = protocol_data.max_fails if protocol_data is not None else min(max(policy.max_failures, -1) + 1, TRIES)
    lines = (
        b"%b %d" % (ids.shown(job).encode(), 13 if time else 12),
        b"name %b" % spelled(job.queue),
        b"ttr %d" % round((policy.lease_s or LEASE_S) * 1_000),
        b"ttl %d" % (protocol_data.ttl_ms if protocol_data is not None else 0),
        b"payload-size %d" % len(payload),
        b"payload %b" % payload,
        b"max-attempts %d" % policy.max_attempts,
        b"attempts %d" % job.attempts,
        b"max-fails %d" % fails,
        b"fails %d" % job.failures,
        b"priority %d" % min(max(job.priority, LOWEST), HIGHEST),
        b"state %d" % state,
        b"created %b" % stamp(job.created),
        *((b"time %b" % stamp(time),) if time else ()),
        b"",
    )
    return b"\r\n".join(lines)


def outcome(job: Job) -> tuple[bool, bytes] | None:
    """Success and result of a job that has ended and is kept; None: it has not ended."""
    if job.state is State.COMPLETE or job.state is State.FAILED:
        result = job.extra.result if job.extra is not None else None
        return job.state is State.COMPLETE, b"" if result is None else result.body
    if job.state is State.DEAD:
        error = job.extra.error if job.extra is not None else None
        return False, b"" if error is None or error.lost else error.message.encode()
    return None
