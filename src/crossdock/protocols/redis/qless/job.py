"""A job as qless shows it: single fields, its history, and the JSON object (qless.md sections 3 and 4)."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from math import floor, inf
from typing import Any, Final

import msgspec

from crossdock.engine.job_view import qless_data
from crossdock.engine.qless import history
from crossdock.engine.qless.queries import tracked_and_dependents
from crossdock.engine.queries.jobs import jobs_by_number
from crossdock.engine.state import EngineState
from crossdock.model.job import Extra, Form, Job, Number
from crossdock.model.protocol_data import HistoryEntry, HistoryKind, QlessData
from crossdock.model.states import State
from crossdock.protocols.payload import compact
from crossdock.protocols.redis.keys.values import TOO_LARGE
from crossdock.protocols.redis.qless import cjson
from crossdock.protocols.redis.qless.arguments import NAME_BYTES
from crossdock.protocols.redis.qless.call import UNIFIED, Dialect

#: JSON with more commas is compared as text, because building millions of values would take seconds.
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
    # A job that `timeout` released has the first sort key. Jobs of other protocols have no other sign of it.
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
    """The data as it was put. For a job of another protocol, its payload if that is a JSON object or list, else an
    object that contains it (model.md section 9)."""
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
        encoded = msgspec.json.encode({"payload": {"base64": job.payload}})  # msgspec encodes bytes as base64
        return encoded.decode()


def changed(job: Job, payload: bytes | None) -> bytes | None:
    """The data that a worker sent if it differs from the job's, else None. Workers send the data with every call, and
    the payload of a job of another protocol must stay the same byte for byte (model.md section 9)."""
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
        shown["queue" if dialect.is_reqless else "q"] = one.name
    if one.what is HistoryKind.THROTTLED:
        shown["queue"] = one.name
    if one.what is HistoryKind.SAID:
        extra = cjson.read(one.data.decode("utf-8", "surrogateescape")) if one.data else {}
        items = extra.items() if isinstance(extra, dict) else enumerate(extra, 1) if isinstance(extra, list) else ()
        shown |= {str(key): value for key, value in items if str(key) not in ("when", "what")}
        return shown | {"what": one.name}
    shown["what"] = "failed-retries" if one.what is HistoryKind.EXHAUSTED and dialect.is_reqless else _NAMED[one.what]
    if one.what is HistoryKind.POPPED or (one.what is HistoryKind.FAILED and one.name):
        shown["worker"] = one.name
    if one.what is HistoryKind.FAILED or one.what is HistoryKind.EXHAUSTED:
        shown["group"] = one.group
    return shown


def staged(entries: Sequence[HistoryEntry]) -> list[dict[str, Any]]:
    """The history of the per-script form: one object per stage (qless.md section 6)."""
    stages: list[dict[str, Any]] = []
    for one in entries:
        if one.what is HistoryKind.PUT or not stages:
            stages.append({"q": one.name, "put": floor(one.when)})
        elif one.what is HistoryKind.POPPED:
            stages[-1] |= {"popped": floor(one.when), "worker": one.name}
        elif one.what is HistoryKind.DONE:
            stages[-1]["done"] = floor(one.when)
        elif one.what in _FAILED:  # an entry with a worker counts for all stages of that worker
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


#: The texts of small integers, which most jobs have as retries and priority.
_SMALL: Final[dict[int | float, str]] = {number: cjson.number(number) for number in range(-100, 101)}

#: The kinds up to this one occur in every job, and their texts are cached. Their names have limited lengths.
_DONE: Final = HistoryKind.DONE


def texts(state: EngineState, jobs: list[Job], dialect: Dialect, most: int | None = None) -> str:
    """A JSON list of jobs; an empty one as the scripts write it. `most` limits its characters, because a call may name
    the same job many times."""
    if len(jobs) == 1:
        return f"[{text(state, jobs[0], dialect)}]"
    if not jobs:
        return "[]" if dialect.is_reqless else "{}"
    if most is None:
        return f"[{','.join([text(state, job, dialect) for job in jobs])}]"
    found: list[str] = []
    for job in jobs:
        found.append(text(state, job, dialect))
        most -= len(found[-1])
        if most < 0:
            raise TOO_LARGE
    return f"[{','.join(found)}]"


def text(state: EngineState, job: Job, dialect: Dialect, *, dependencies: bool = True, more: str = "") -> str:
    """The job as a JSON object, with members in the order of the scripts and `more` at the end.

    A pop spends most of its time here, so the text is written in one pass. The standard library quotes the strings; it
    does not escape `/`, which makes no difference to readers. Without `dependencies` the list of dependencies is empty.
    """
    jid, extra, lease = job.jid, job.extra, job.lease
    protocol_data = extra.protocol_data if extra is not None else None
    lines: Sequence[HistoryEntry]
    if (
        lease is not None and lease.until is not None and extra is not None and type(protocol_data) is QlessData
    ):  # popped by qless: the fast path
        its_data, lines = job.payload.decode("utf-8", "surrogateescape"), extra.history
        its_queue, its_state, its_worker = (
            protocol_data.queue or job.queue,
            protocol_data.state or "running",
            lease.worker,
        )
        its_retries, its_end = protocol_data.retries, protocol_data.expires
        left = its_retries - job.failures if type(its_retries) is int else remaining(job)
    else:
        its_data, lines = data(job), history.lines(job)
        its_queue, its_state, its_worker = queue(job), state_name(job), worker(job)
        its_retries, its_end, left = retries(job), expires(job), remaining(job)
    error = dependents = "{}"
    named = ""
    middle = None
    tracked, waiting = tracked_and_dependents(state, job)
    if extra is not None:
        if extra.error is not None:
            error = cjson.write(failure(job))
        if extra.tags or extra.links is not None or (type(protocol_data) is QlessData and protocol_data.spawned_from):
            middle = _with_rare(state, job, extra, its_queue, its_state, dialect, tracked, dependencies)
    if middle is None:
        write = _middle if len(job.kind) <= NAME_BYTES else _middle_text
        middle = write(job.kind, its_queue, its_state, dialect.old, tracked)
    if waiting:
        dependents = _jids(state, waiting)
    if dialect.throttled:
        named = f'"throttles":{cjson.write(list(extra.throttles) if extra is not None else [])},'
    priority = dialect.flipped(job.priority) if dialect.smaller_first else job.priority
    if dialect.per_script:
        shown_data, shown_lines = cjson.write(cjson.read(its_data)), cjson.write(staged(lines))
    else:
        shown_data, shown_lines = quoted(its_data), _history(lines, dialect)
    return (
        f'{{"jid":{quoted(jid)},"retries":{_SMALL.get(its_retries) or cjson.number(its_retries)},'
        f'"data":{shown_data},"failure":{error},"expires":{cjson.number(its_end)},"remaining":{left},{middle}'
        f'"history":{shown_lines},{named}"dependents":{dependents},'
        f'"priority":{_SMALL.get(priority) or cjson.number(priority)},"worker":{quoted(its_worker)}{more}}}'
    )


def _middle_text(
    kind: str,
    queue: str,
    state: str,
    old: bool,
    tracked: bool,
    spawned: str = "false",
    depends_on: str = "{}",
    tags: str = "{}",
) -> str:
    """The members between `remaining` and `history`."""
    first = "" if old else f'"spawned_from_jid":{spawned},'
    return (
        f'{first}"dependencies":{depends_on},"klass":{quoted(kind)},"tracked":{"true" if tracked else "false"},'
        f'"tags":{tags},"queue":{quoted(queue)},"state":"{state}",'
    )


#: Cached, because most jobs share these few names. Their lengths are limited.
_middle = lru_cache(maxsize=4_096)(_middle_text)


def _with_rare(
    state: EngineState,
    job: Job,
    extra: Extra,
    queue: str,
    job_state: str,
    dialect: Dialect,
    tracked: bool,
    dependencies: bool,
) -> str:
    spawned, protocol_data = "false", extra.protocol_data
    if type(protocol_data) is QlessData and protocol_data.spawned_from:
        spawned = quoted(protocol_data.spawned_from)
    depends_on = "{}"
    if dependencies and extra.links is not None and extra.links.depends_on:
        depends_on = _jids(state, extra.links.depends_on)
    tags = cjson.write(list(extra.tags))
    return _middle_text(job.kind, queue, job_state, dialect.old, tracked, spawned, depends_on, tags)


def _jids(state: EngineState, numbers: Iterable[Number]) -> str:
    jobs = jobs_by_number(state)
    return cjson.write(sorted(jobs[number].jid for number in numbers if number in jobs))


def _history(lines: Sequence[HistoryEntry], dialect: Dialect) -> str:
    if not lines:
        return "{}"
    queue = "queue" if dialect.is_reqless else "q"
    written = [
        _step(one.what, one.when, one.name, queue) if one.what <= _DONE else cjson.write(entry(one, dialect))
        for one in lines
    ]
    return f"[{','.join(written)}]"


@lru_cache(maxsize=4_096)
def _step(what: HistoryKind, when: float, name: str, queue: str) -> str:
    """A history entry that every job has. Times are whole seconds and names are few, so jobs share the text."""
    if what is HistoryKind.PUT:
        return f'{{"when":{when:.14g},"{queue}":{quoted(name)},"what":"put"}}'
    if what is HistoryKind.POPPED:
        return f'{{"when":{when:.14g},"what":"popped","worker":{quoted(name)}}}'
    return f'{{"when":{when:.14g},"what":"done"}}'
