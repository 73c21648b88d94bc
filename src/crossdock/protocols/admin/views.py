"""Jobs, queues, workers and batches as replies show them. Times are RFC 3339 in UTC, spans are seconds (`…_s`)."""

import base64
import math
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from crossdock.engine.index.queue import Queue
from crossdock.engine.index.tags import name as tag_name
from crossdock.engine.job_view import dependencies_of
from crossdock.engine.qless.queries import tracked_jids
from crossdock.engine.queries.jobs import dependents_of, indexed_jobs, job_by_number
from crossdock.engine.queries.queues import oldest_since
from crossdock.engine.queries.records import lock_named, progress_of
from crossdock.engine.resqu import queries
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.job import Callback, Form, Job, Number
from crossdock.model.records import Batch, Pause, Phase, ResquBatch
from crossdock.model.states import State
from crossdock.protocols.admin.matchers import state_since
from crossdock.protocols.admin.measurements import Demand, asked_s
from crossdock.protocols.admin.timeline import lease_end, timeline
from crossdock.protocols.payload import compact
from crossdock.protocols.timestamps import stamp
from crossdock.protocols.worker_registry import RUNNING, Worker

#: Bytes of a payload and characters of an error in a row.
_PREVIEW: Final = 160
#: Maximum dependents that are named.
_DEPENDENTS: Final = 100

View = dict[str, Any]

_decode = msgspec.json.Decoder().decode


def when(at: float) -> str | None:
    return stamp(at) if at and math.isfinite(at) else None


def row(job: Job, now: Now) -> View:
    """A job in a list."""
    error = job.extra.error if job.extra is not None else None
    return {
        "number": job.number,
        "jid": job.jid,
        "queue": job.queue,
        "kind": job.kind,
        "state": job.state.name.lower(),
        "priority": job.priority,
        "since": stamp(state_since(job)),
        "age_s": max(0.0, now.wall - state_since(job)),
        "due": when(_due(job, now)),
        "attempts": job.attempts,
        "failures": job.failures,
        "worker": job.lease.worker if job.lease is not None else None,
        "tags": tags(job),
        "error": error.text[:_PREVIEW] if error is not None else None,
        "payload": job.payload[:_PREVIEW].decode("utf-8", "replace"),
        "payload_bytes": len(job.payload),
    }


def tags(job: Job) -> list[str]:
    return [tag_name(tag) for tag in job.extra.tags] if job.extra is not None else []


def _due(job: Job, now: Now) -> float:
    """Wall: when a timer will change the job's state, 0 if none will."""
    if job.lease is not None:
        return now.wall + job.lease.end - now.steady
    return 0.0 if job.state is State.READY else job.due


def whole(job: Job, state: EngineState, now: Now) -> View:
    """A job with all its fields."""
    extra, policy = job.extra, job.policy
    shown = row(job, now) | {
        "origin": job.origin,
        "payload": _payload(job),
        "custom": _custom(extra.custom) if extra is not None and extra.custom else None,
        "replayed_from": extra.replayed_from or None if extra is not None else None,
        "created": stamp(job.created),
        "policy": {
            "max_failures": policy.max_failures,
            "max_attempts": policy.max_attempts,
            "lease_s": policy.lease_s,
            "backoff": policy.backoff.name.lower(),
            "exhausted": policy.exhausted.name.lower(),
            "success": policy.success.name.lower(),
            "lease_expiry": policy.lease_expiry.name.lower(),
        },
        "lease": _lease(job, now),
        "error": _error(job),
        "progress": progress(state, job.jid, now),
        "tracked": when(tracked_jids(state).get(job.jid, 0.0)),
        "depends_on": [each.jid for each in indexed_jobs(state, _dependencies(job, state))],
        "dependents": [each.jid for each in indexed_jobs(state, islice(dependents_of(state, job), _DEPENDENTS))],
    }
    return shown | _links(job, state, now) | {"timeline": timeline(job, now)}


def _dependencies(job: Job, state: EngineState) -> list[Number]:
    """The unmet dependencies of a blocked job. A dependency that has just ended may be gone, because dependents are
    resolved in slices."""
    return (
        [dependency for dependency in dependencies_of(job) if job_by_number(state, dependency) is not None]
        if job.state is State.BLOCKED
        else []
    )


def _payload(job: Job) -> Any:
    if job.form is Form.NONE:
        return None
    if job.form is Form.JSON and _is_readable(job.payload):
        return _one_line(job.payload)
    try:
        return job.payload.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(job.payload).decode()}


def _custom(text: bytes) -> Any:
    return _one_line(text) if _is_readable(text) else text.decode()


def _is_readable(text: bytes) -> bool:
    """Can every JSON decoder read it? Protocols accept half a surrogate pair or 1e999, which would make the whole reply
    unreadable."""
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _one_line(text: bytes) -> msgspec.Raw:
    """JSON as it was pushed, without line breaks, which would end the reply."""
    return msgspec.Raw(compact(text) if b"\n" in text else text)


def _lease(job: Job, now: Now) -> View | None:
    lease = job.lease
    if lease is None:
        return None
    return {
        "worker": lease.worker,
        "via": lease.via,
        "at": stamp(lease.at),
        "ends": when(lease_end(lease, now)),
        "token": lease.token,
        "bound": lease.bound.name.lower(),
        "beats": lease.beats,
        "wait_s": lease.wait_s,
    }


def _error(job: Job) -> View | None:
    error = job.extra.error if job.extra is not None else None
    if error is None:
        return None
    return {
        "group": error.group,
        "message": error.message,
        "backtrace": error.backtrace,
        "first_at": when(error.first_at),
        "at": when(error.at),
        "next_at": when(error.next_at),
        "lost": error.lost,
    }


def _links(job: Job, state: EngineState, now: Now) -> View:
    links = job.extra.links if job.extra is not None else None
    if links is None:
        return {"batch": None, "callback": None, "lock": None, "expires": None}
    lock = links.lock
    held = lock_named(state, lock.name) if lock is not None else None
    return {
        "batch": links.batch or None,
        "callback": {"batch": links.callback_of, "call": links.callback.name.lower()}
        if links.callback is not None
        else None,
        "lock": None
        if lock is None
        else {
            "name": lock.name,
            "held": held is not None and held.holder == job.number,
            "ends": when(now.wall + lock.end - now.steady),
            "freed": lock.freed.name.lower(),
        },
        "expires": when(links.expires),
    }


def progress(state: EngineState, jid: str, now: Now) -> View | None:
    found = progress_of(state, jid)
    if found is None:
        return None
    return {
        "state": found.state,
        "percent": found.percent,
        "text": found.text,
        "updated": stamp(found.updated),
        "ends": when(now.wall + found.until - now.steady),
    }


def queue(one: Queue, state: EngineState, demand: Demand, now: Now) -> View:
    oldest = oldest_since(state, one.name)
    return {
        "queue": one.name,
        "ready": one.waiting,
        "paused": one.paused,
        "pause": None if one.pause is None else pause(one.pause),
        "oldest_s": None if oldest is None else max(0.0, now.wall - oldest),
        "first_seen": stamp(one.first_seen),
        "asked_s": asked_s(demand, one.name, now.steady),
        "askers": demand.askers(one.name),
    }


def pause(one: Pause) -> View:
    return {"since": stamp(one.since), "reason": one.reason or None, "by": one.user or None}


def worker(one: Worker, leases: Mapping[str, int] | None, now: Now) -> View:
    """A Faktory worker, which is connected."""
    return {
        "worker": one.wid,
        "hostname": one.hostname,
        "pid": one.pid,
        "labels": one.labels,
        "state": "running" if one.state == RUNNING else one.state,
        "connections": len(one.hang_ups),
        "leases": None if leases is None else leases.get(one.wid, 0),
        "rss_kib": one.rss_kb,
        "beat_s": max(0.0, now.steady - one.beat_at),
        "started": stamp(one.started),
        "protocol": "faktory",
    }


# Batches: Faktory's, which are counted and have callbacks, and Resqu's, which become visible all at once.


def batch(one: Batch, now: Now) -> View:
    """`state` is open, running, then complete (all executed) and success (all succeeded), callbacks included."""
    if not one.committed:
        state = "open"
    elif one.finished & Callback.SUCCESS:
        state = "success"
    else:
        state = "complete" if one.finished & Callback.COMPLETE else "running"
    return {
        "batch": one.name,
        "protocol": one.via,
        "description": one.description,
        "parent": one.parent or None,
        "state": state,
        "total": one.total,
        "pending": one.pending,
        "failed": len(one.bad),
        "complete": _callback(one, Callback.COMPLETE),
        "success": _callback(one, Callback.SUCCESS),
        "created": stamp(one.created),
        "ends": when(now.wall + one.end - now.steady),
    }


def _callback(one: Batch, call: Callback) -> str | None:
    """waiting, pushed or done. None: the batch has no such callback."""
    if (one.complete if call is Callback.COMPLETE else one.success) is None:
        return None
    return "done" if one.answered & call else "pushed" if one.called & call else "waiting"


def callbacks(one: Batch) -> list[View]:
    """The jobs that are pushed when the batch is complete, and when all its jobs have succeeded."""
    return [
        {
            "call": call.name.lower(),
            "state": _callback(one, call),
            "jid": spec.jid,
            "queue": spec.queue,
            "kind": spec.kind,
        }
        for call, spec in ((Callback.COMPLETE, one.complete), (Callback.SUCCESS, one.success))
        if spec is not None
    ]


_PHASES: Final = {
    Phase.UNCOMMITTED: "open",
    Phase.COMMITTED: "committed",
    Phase.BACKLOG: "backlog",
    Phase.ACTIVE: "running",
}


def resqu_batch(one: ResquBatch, state: EngineState, now: Now) -> View:
    """`state` is open, then committed until a pool has the batch, then running. It is backlog while another batch of
    its source is running. `pending` counts the jobs that no worker has started."""
    return {
        "batch": one.name,
        "protocol": one.via,
        "description": f"{one.job_name} of {one.source}" + (f" in {one.queue}" if one.queue else ""),
        "parent": None,
        "state": _PHASES[one.phase],
        "total": one.total,
        "pending": queries.length(state, one.name),
        "failed": None,
        "complete": None,
        "success": None,
        "created": stamp(one.created),
        "ends": when(now.wall + one.end - now.steady) if math.isfinite(one.end) else None,
    }
