"""A job as qless shows it, and the history of one (protocol page, qless 3 and 4)."""

from collections.abc import Sequence
from math import floor, inf
from typing import Any, Final

import msgspec

from crossdock.engine.job_view import dependencies_of, qless_data
from crossdock.engine.qless import history
from crossdock.engine.state import EngineState
from crossdock.model.job import Form, Job
from crossdock.model.protocol_data import HistoryEntry, HistoryKind
from crossdock.model.states import State
from crossdock.protocols.json import compact
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.call import UNIFIED, Dialect

#: JSON of more parts is compared as text: to build millions of values would hold everybody up for seconds.
_PARTS_AT_MOST: Final = 50_000

_STATES: Final = {
    State.SCHEDULED: "scheduled",
    State.RETRYING: "scheduled",
    State.BLOCKED: "depends",
    State.HELD: "throttled",
    State.READY: "waiting",
    State.LEASED: "running",
    State.COMPLETE: "complete",
    State.FAILED: "failed",
    State.DEAD: "failed",
}
_NAMED: Final = {
    HistoryKind.PUT: "put",
    HistoryKind.POPPED: "popped",
    HistoryKind.DONE: "done",
    HistoryKind.FAILED: "failed",
    HistoryKind.TIMED_OUT: "timed-out",
    HistoryKind.EXHAUSTED: "failed",
    HistoryKind.THROTTLED: "throttled",
}
_FAILED: Final = frozenset({HistoryKind.FAILED, HistoryKind.EXHAUSTED})


def state_name(job: Job) -> str:
    protocol_data = qless_data(job)
    if protocol_data is not None and protocol_data.state:
        return protocol_data.state
    # What `timeout` took back stands before all others; of another door's job nothing else tells of it.
    if (
        protocol_data is None
        and job.sort_key is not None
        and job.sort_key[0] == -inf < -job.priority
        and job.state is State.READY
    ):
        return "stalled"
    return _STATES[job.state]


def worker(job: Job) -> str:
    if job.lease is not None:
        return job.lease.worker
    protocol_data = qless_data(job)
    return protocol_data.worker if protocol_data is not None else ""


def queue(job: Job) -> str:
    if job.state is State.COMPLETE:
        return ""
    protocol_data = qless_data(job)
    return protocol_data.queue if protocol_data is not None and protocol_data.queue else job.queue


def retries(job: Job) -> int | float:
    protocol_data = qless_data(job)
    return job.policy.max_failures if protocol_data is None else protocol_data.retries


def remaining(job: Job) -> int:
    return floor(max(-1e15, min(1e15, retries(job) - job.failures)))


def data(job: Job) -> str:
    """As it was put; of another door's job an object or a list, or else an object about it (MODEL section 9)."""
    if qless_data(job) is not None:
        return job.payload.decode("utf-8", "surrogateescape")
    if job.form is Form.JSON:
        text = job.payload.decode("utf-8", "surrogateescape")
        return text if job.payload.lstrip()[:1] in (b"{", b"[") else f'{{"payload":{text}}}'
    if job.form is Form.NONE:
        return "{}"
    try:
        return cjson.write({"payload": job.payload.decode()})
    except UnicodeDecodeError:
        encoded = msgspec.json.encode({"payload": {"base64": job.payload}})  # msgspec writes bytes in base64
        return encoded.decode()


def changed(job: Job, payload: bytes | None) -> bytes | None:
    """What a worker sends of a job's data, if it puts something else in place: workers send all of it with every call,
    and another door's job goes back there byte for byte (MODEL section 9)."""
    if payload is None or payload == job.payload:
        return None
    if qless_data(job) is not None:
        return payload
    if job.form is Form.JSON and payload.count(b",") > _PARTS_AT_MOST and cjson.is_plain(payload):
        return None if compact(payload) == compact(data(job).encode()) else payload
    try:
        same: bool = cjson.read(payload.decode("utf-8", "surrogateescape")) == cjson.read(data(job))
    except cjson.Malformed:
        return payload
    return None if same else payload


def entry(one: HistoryEntry, dialect: Dialect = UNIFIED) -> dict[str, Any]:
    shown: dict[str, Any] = {"when": floor(one.when)}
    if one.what is HistoryKind.PUT:
        shown["queue" if dialect.renamed else "q"] = one.name
    if one.what is HistoryKind.THROTTLED:
        shown["queue"] = one.name
    if one.what is HistoryKind.SAID:
        said = cjson.read(one.data.decode("utf-8", "surrogateescape")) if one.data else {}
        items = said.items() if isinstance(said, dict) else enumerate(said, 1) if isinstance(said, list) else ()
        shown |= {str(key): value for key, value in items if str(key) not in ("when", "what")}
        return shown | {"what": one.name}
    shown["what"] = "failed-retries" if one.what is HistoryKind.EXHAUSTED and dialect.renamed else _NAMED[one.what]
    if one.what is HistoryKind.POPPED or (one.what is HistoryKind.FAILED and one.name):
        shown["worker"] = one.name
    if one.what is HistoryKind.FAILED or one.what is HistoryKind.EXHAUSTED:
        shown["group"] = one.group
    return shown


def staged(entries: Sequence[HistoryEntry]) -> list[dict[str, Any]]:
    """The oldest form: an object a stage, which tells what happened in it (page 6)."""
    stages: list[dict[str, Any]] = []
    for one in entries:
        if one.what is HistoryKind.PUT or not stages:
            stages.append({"q": one.name, "put": floor(one.when)})
        elif one.what is HistoryKind.POPPED:
            stages[-1] |= {"popped": floor(one.when), "worker": one.name}
        elif one.what is HistoryKind.DONE:
            stages[-1]["done"] = floor(one.when)
        elif one.what in _FAILED:  # by name: in all stages that were this worker's
            for stage in stages if one.name else stages[-1:]:
                if not one.name or stage.get("worker") == one.name:
                    stage["failed"] = one.when
    return stages


def failure(job: Job) -> dict[str, Any]:
    error = job.extra.error if job.extra is not None else None
    if error is None:
        return {}
    when = error.at if error.when is None else error.when
    return {"message": error.message, "group": error.group, "when": when, "worker": error.worker}


def expires(job: Job) -> float:
    lease, protocol_data = job.lease, qless_data(job)
    if protocol_data is not None and (lease is None or lease.until is not None):
        return protocol_data.expires
    if lease is None:
        return 0.0
    if lease.until is not None:
        return lease.until
    lasts = (lease.end if lease.late is None else lease.late) - lease.began
    return lease.at + lasts if lasts < float("inf") else 0.0


def show(state: EngineState, job: Job, dialect: Dialect) -> dict[str, Any]:
    """The object; key order as the scripts write it."""
    jobs = state.jobs
    protocol_data = qless_data(job)
    shown = {
        "jid": job.jid,
        "retries": retries(job),
        "data": data(job),
        "failure": failure(job),
        "expires": expires(job),
        "remaining": remaining(job),
        "spawned_from_jid": (protocol_data.spawned_from or False) if protocol_data is not None else False,
        "dependencies": sorted(jobs[dependency].jid for dependency in dependencies_of(job) if dependency in jobs),
        "klass": job.kind,
        "tracked": job.jid in state.qless.watched,
        "tags": list(job.extra.tags) if job.extra is not None else [],
        "queue": queue(job),
        "state": state_name(job),
        "history": [entry(one, dialect) for one in history.lines(job)],
        "dependents": sorted(jobs[each].jid for each in state.dependents.get(job.number, ())),
        "priority": dialect.turned(job.priority),
        "worker": worker(job),
    }
    if dialect.old:
        del shown["spawned_from_jid"]
    if dialect.throttled:
        shown["throttles"] = list(job.extra.throttles) if job.extra is not None else []
    if dialect.in_scripts:
        shown |= {"data": cjson.read(data(job)), "history": staged(history.lines(job))}
    return shown
