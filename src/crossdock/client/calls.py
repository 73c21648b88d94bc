"""One `Call` for each request of a client: how it is written for a server, and what its reply means.

Nothing here does input or output. The blocking client and the asyncio client run these calls.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from crossdock.client.encode import encode, job_members, job_text
from crossdock.client.errors import (
    Broken,
    ClientError,
    InvalidJob,
    JobCancelled,
    JobFailed,
    NotUnique,
    Refused,
    ServerFull,
    UnknownJob,
    Unsupported,
)
from crossdock.client.jobs import BatchStatus, FetchedJob, NewJob, Progress, RateLimit, Schedule
from crossdock.client.wire import OK, Features, Reply, error_text

T = TypeVar("T")

#: Seconds that one request waits on the server. A longer wait is several requests.
WAIT_S: Final = 60.0
#: Seconds that a FETCH of a plain server waits.
PLAIN_WAIT_S: Final = 2.0
#: Jobs or IDs that one request names.
MANY: Final = 1_000
#: Bytes of the results in one ACKB.
ACK_BYTES: Final = 4 * 1024 * 1024

#: How the errors of a server that takes no more jobs begin.
_FULL: Final = ("the server holds ", "the disk is nearly full", "the disk is full")
#: How errors begin that concern the connection. The server closes it.
_CLOSING: Final = ("shutdown in progress", "too many connections")


class Call(NamedTuple, Generic[T]):
    #: The request, with its line end. Raises Unsupported or InvalidJob.
    line: Callable[[Features], bytes]
    #: The value of a reply that is not an error. `repeated`: an earlier try may have been executed.
    read: Callable[[Reply, bool], T]
    wait_s: float = 0.0  #: how long the server may take on purpose
    #: Whether the request may be repeated after its reply was lost.
    repeatable: Callable[[Features], bool] = lambda features: True
    #: The value if this client has no lease of the job. `repeated`: perhaps because an earlier try was executed.
    no_lease: Callable[[bool], T] | None = None


def refusal(body: bytes) -> ClientError:
    """The error of a reply that is one."""
    if body.startswith(b"NOTUNIQUE"):
        return NotUnique("a job with the same unique key is already there; nothing was pushed")
    text = error_text(body)
    if text.startswith(_FULL):
        return ServerFull(text)
    if text.startswith(_CLOSING):
        return Broken(f"the server closed the connection: {text}")
    return Refused(text)


def is_full(text: str) -> bool:
    """Whether the refusal of one job of a bulk push says that the server is full."""
    return text.startswith(_FULL)


def result_of(call: Call[T], reply: Reply, repeated: bool) -> T:
    """Raises the error that the server returned."""
    if reply.mark != "-":
        return call.read(reply, repeated)
    error = refusal(reply.body or b"")
    if call.no_lease is not None and isinstance(error, Refused) and str(error).startswith("Job not found"):
        return call.no_lease(repeated)
    raise error


# Replies


def _ok(reply: Reply, repeated: bool = False) -> None:
    if reply is not OK:
        raise _unexpected(reply)


def _true(reply: Reply, repeated: bool = False) -> bool:
    _ok(reply)
    return True


def _value(reply: Reply, kind: Any) -> Any:
    if reply.mark != "$" or reply.body is None:
        raise _unexpected(reply)
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"invalid reply from the server: {error}") from error


def _text(reply: Reply, repeated: bool = False) -> str:
    if reply.mark != "$" or reply.body is None:
        raise _unexpected(reply)
    return reply.body.decode("utf-8", "replace")


def _unexpected(reply: Reply) -> Broken:
    return Broken(f"unexpected reply: {reply.mark}{(reply.body or b'')[:80]!r}")


# Requests


def portions(items: Iterable[T], most: int = MANY) -> Iterator[list[T]]:
    """The items of each request."""
    source = iter(items)
    while some := list(islice(source, most)):
        yield some


def _json(verb: bytes, body: Any) -> bytes:
    try:
        text = encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidJob(f"{verb.decode()} cannot be sent as JSON: {error}") from error
    return b"%b %b\r\n" % (verb, text.replace(b"\n", b" "))


def _word(what: str, text: str) -> bytes:
    """A word of a request that is not JSON. Raises InvalidJob: a line break in it would begin another request."""
    word = text.encode("utf-8", "replace")
    if not word or len(word) > 255 or word.split() != [word]:
        raise InvalidJob(f"{what} {text!r} must have 1 to 255 bytes and no blanks")
    return word


def _fixed(line: bytes) -> Callable[[Features], bytes]:
    return lambda features: line


def _needing(extension: str, what: str, line: bytes) -> Callable[[Features], bytes]:
    def checked(features: Features) -> bytes:
        if extension not in features.extensions:
            raise Unsupported(extension, what)
        return line

    return checked


def _has_once(features: Features) -> bool:
    return features.once


def push(job: NewJob) -> Call[str]:
    def line(features: Features) -> bytes:
        return b"PUSH %b\r\n" % job_text(job, features)

    def read(reply: Reply, repeated: bool) -> str:
        _ok(reply)
        return job.jid

    return Call(line, read, repeatable=_has_once)


def cancel(jids: Sequence[str], reason: str) -> Call[list[str]]:
    """The IDs that were not cancelled."""
    line = _json(b"CANCEL", {"jids": jids, "reason": reason})

    def read(reply: Reply, repeated: bool) -> list[str]:
        found: _Cancelled = _value(reply, _Cancelled)
        return found.unknown + found.ended

    return Call(_needing("cancel", "cancel", line), read)


class _Cancelled(msgspec.Struct):
    unknown: list[str] = []
    ended: list[str] = []


# Batches


def new_batch(
    description: str, success: NewJob | None, complete: NewJob | None, parent: str, features: Features
) -> bytes:
    body: dict[str, Any] = {"description": description}
    if parent:
        body["parent_bid"] = parent
    for name, job in (("success", success), ("complete", complete)):
        if job is not None:
            body[name] = job_members(job, features)
    return _json(b"BATCH NEW", body)


def open_new_batch(description: str, success: NewJob | None, complete: NewJob | None, parent: str) -> Call[str]:
    """The new batch's ID. A batch whose reply is lost is never committed, so the server forgets it."""
    if success is None and complete is None:
        raise InvalidJob("a batch needs a success or a complete callback, or both")
    return Call(lambda features: new_batch(description, success, complete, parent, features), _text)


def open_batch(bid: str) -> Call[str]:
    return Call(_fixed(b"BATCH OPEN %b\r\n" % _word("batch", bid)), _text)


def commit_batch(bid: str) -> Call[None]:
    return Call(_fixed(b"BATCH COMMIT %b\r\n" % _word("batch", bid)), _ok)


def batch_status(bid: str) -> Call[BatchStatus]:
    line = b"BATCH STATUS %b\r\n" % _word("batch", bid)
    return Call(_fixed(line), lambda reply, _: _value(reply, BatchStatus))


# Results and progress


class Outcome(msgspec.Struct, kw_only=True):
    jid: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: "Error | None" = None
    attempts: int = 0


class Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None
    backtrace: list[str] | None = None


def outcome(jid: str, wait_s: float) -> Call[Outcome]:
    wait_s = min(wait_s, WAIT_S)
    line = _json(b"RESULT", {"jid": jid, "wait_s": wait_s})
    return Call(_needing("results", "result", line), lambda reply, _: _value(reply, Outcome), wait_s)


def result_in(found: Outcome) -> bytes | None:
    """The result as JSON. None: the job has not ended. Raises JobFailed, JobCancelled or UnknownJob."""
    match found.state:
        case "done":
            return bytes(found.result)
        case "waiting" | "running":
            return None
        case "dead":
            error = found.error or Error()
            raise JobFailed(
                found.jid, error.type or "", error.message or "", tuple(error.backtrace or ()), found.attempts
            )
        case "cancelled":
            raise JobCancelled(found.jid, (found.error or Error()).message or "")
    raise UnknownJob(
        f"job {found.jid} is not known; results are kept for jobs that were pushed with keep_result_s, for that long"
    )


def progress(jid: str) -> Call[Progress]:
    return Call(_fixed(b"TRACK GET %b\r\n" % _word("job", jid)), lambda reply, _: _value(reply, Progress))


def tracked(found: Progress) -> Progress:
    """Raises UnknownJob if there is no record of its progress."""
    if found.state == "unknown":
        raise UnknownJob(f"the progress of job {found.jid} is not known; push it with track=True, and read it in time")
    return found


def next_progress(jid: str, after: str, wait_s: float) -> Call[Progress]:
    wait_s = min(wait_s, WAIT_S)
    line = _json(b"TRACK WAIT", {"jid": jid, "after": after, "wait_s": wait_s})
    return Call(_needing("waits", "follow", line), lambda reply, _: _value(reply, Progress), wait_s)


def set_progress(jid: str, percent: int | None, text: str | None) -> Call[None]:
    return Call(_fixed(_json(b"TRACK SET", {"jid": jid, "percent": percent, "desc": text})), _ok)


# Working

_fetched_one: Final = msgspec.json.Decoder(FetchedJob).decode
_fetched: Final = msgspec.json.Decoder(list[FetchedJob]).decode


def fetch(
    queues: Sequence[str], count: int, wait_s: float, lease_s: float | None, order: Literal["ordered", "random"]
) -> Call[list[FetchedJob]]:
    """On a plain server one job at a time, which waits for up to 2 s."""
    if not queues:
        raise ValueError("fetch needs the name of a queue")
    wait_s = min(wait_s, WAIT_S)

    def line(features: Features) -> bytes:
        if "fetch-many" in features.extensions:
            body: dict[str, Any] = {
                "queues": queues, "count": min(count, features.fetch_many), "wait_s": wait_s, "order": order
            }  # fmt: skip
            if lease_s is not None:
                body["lease_s"] = lease_s
            return _json(b"FETCHB", body)
        if lease_s is not None:
            raise Unsupported("leases", "fetch with lease_s")
        words = [_word("queue", each) for each in queues]
        if order == "random":
            random.shuffle(words)
        return b"FETCH %b\r\n" % b" ".join(words)

    return Call(line, _jobs, max(wait_s, PLAIN_WAIT_S))


def _jobs(reply: Reply, repeated: bool) -> list[FetchedJob]:
    if reply.mark != "$":
        raise _unexpected(reply)
    body = reply.body
    if body is None:
        return []
    try:
        if body.startswith(b"["):
            return _fetched(body)
        job = _fetched_one(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Broken(f"invalid reply from the server: {error}") from error
    if job.failure is not None:  # a plain server does not count leases
        job = msgspec.structs.replace(job, attempt=job.failure.retry_count + 2)
    return [job]


class _Ack(msgspec.Struct, omit_defaults=True):
    jid: str
    result: msgspec.Raw | None = None


class _Acked(msgspec.Struct):
    refused: dict[str, str] = {}


def ack_portions(
    jobs: Sequence[tuple[str, bytes | None]], features: Features
) -> Iterator[list[tuple[str, bytes | None]]]:
    """The jobs of each request: one on a plain server, otherwise as many as fit."""
    most = MANY if "settle-many" in features.extensions else 1
    some: list[tuple[str, bytes | None]] = []
    size = 0
    for job in jobs:
        more = len(job[1] or b"")
        if some and (len(some) == most or size + more > ACK_BYTES):
            yield some
            some, size = [], 0
        some.append(job)
        size += more
    if some:
        yield some


def ack(jobs: Sequence[tuple[str, bytes | None]]) -> Call[dict[str, str]]:
    """At most 1,000 jobs; one on a plain server. A repeated call cannot tell whether its first try was executed, and
    returns no refusals."""
    body = [_Ack(jid, None if result is None else msgspec.Raw(result)) for jid, result in jobs]

    def line(features: Features) -> bytes:
        if "settle-many" in features.extensions:
            return _json(b"ACKB", body)
        if len(body) > 1:
            raise Unsupported("settle-many", "ack of many jobs")
        return _json(b"ACK", {"jid": body[0].jid})

    def read(reply: Reply, repeated: bool) -> dict[str, str]:
        if reply is OK:
            return {}
        refused: dict[str, str] = _value(reply, _Acked).refused
        return {} if repeated else refused

    return Call(line, read)


def fail(jid: str, kind: str, message: str, backtrace: Sequence[str], final: bool, delay_s: float | None) -> Call[bool]:
    body: dict[str, Any] = {"jid": jid, "errtype": kind, "message": message}
    if backtrace:
        body["backtrace"] = backtrace
    if final:
        body["final"] = True
    if delay_s is not None:
        body["delay_s"] = delay_s
    line = _json(b"FAIL", body)
    how = _needing("settle-many", "fail with final or delay_s", line) if final or delay_s is not None else _fixed(line)
    return Call(how, _true, no_lease=bool)


def snooze(jid: str, delay_s: float, reason: str) -> Call[bool]:
    line = _json(b"SNOOZE", {"jid": jid, "delay_s": delay_s, "reason": reason})
    return Call(_needing("leases", "snooze", line), _true, no_lease=bool)


class _Extended(msgspec.Struct):
    lost: list[str] = []


def extend(wid: str, jids: Sequence[str], lease_s: float) -> Call[list[str]]:
    """Without a wid only the connection that has fetched a job could renew its lease."""
    if not wid:
        raise ValueError("extend is for workers; give the client a wid")
    line = _json(b"EXTEND", {"jids": jids, "lease_s": lease_s})
    return Call(_needing("leases", "extend", line), lambda reply, _: _value(reply, _Extended).lost)


class _State(msgspec.Struct):
    state: str = ""


def beat(wid: str, state: str, rss_kb: int) -> Call[str]:
    if not wid:
        raise ValueError("beat is for workers; give the client a wid")
    body: dict[str, Any] = {"wid": wid}
    if state:
        body["current_state"] = state
    if rss_kb:
        body["rss_kb"] = rss_kb

    def read(reply: Reply, repeated: bool) -> str:
        return "" if reply is OK else _value(reply, _State).state

    return Call(_fixed(_json(b"BEAT", body)), read)


# Applications and the server


def sync_schedules(app: str, schedules: Iterable[Schedule]) -> Call[None]:
    listed = list(schedules)

    def line(features: Features) -> bytes:
        if "schedules" not in features.extensions:
            raise Unsupported("schedules", "sync_schedules")
        return _json(b"SCHEDULE SYNC", {"app": app, "schedules": [_schedule(each, features) for each in listed]})

    return Call(line, _ok)


def _schedule(each: Schedule, features: Features) -> dict[str, Any]:
    """Each run has an ID of its own, which the server makes."""
    members = job_members(each.job, features)
    del members["jid"]
    members.pop("once", None)
    when = {"cron": each.cron, "every_s": each.every_s, "zone": each.zone}
    return {"name": each.name, "job": members} | {name: value for name, value in when.items() if value is not None}


def sync_rates(app: str, rates: Iterable[RateLimit]) -> Call[None]:
    line = _json(b"RATE SYNC", {"app": app, "rates": list(rates)})
    return Call(_needing("rates", "sync_rates", line), _ok)


def info() -> Call[dict[str, Any]]:
    return Call(_fixed(b"INFO\r\n"), lambda reply, _: _value(reply, dict[str, Any]))
