"""The Faktory job: from a PUSH body to a `Spec`, and from a job to the text of a FETCH (faktory.md section 4)."""

from functools import lru_cache
from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.job import Extra, FaktoryData, Form, Job, Spec
from crossdock.model.policies import Policy
from crossdock.protocols.faktory.failure import FailureBody, pushed_failure, shown
from crossdock.protocols.faktory.messages import Int64
from crossdock.protocols.job_spec import (
    QUEUE_NAME,
    RESERVE_AT_MOST,
    RETRIES,
    SHORT_JSON,
    SHORT_NAME,
    InvalidJob,
    check_custom,
    check_job,
    policy_for,
    read_custom,
)
from crossdock.protocols.payload import as_args
from crossdock.protocols.timestamps import stamp

_JSON: Final = Form.JSON  # a module constant: looking up an enumeration's member costs as much as a call
_NULL: Final = msgspec.Raw(b"null")
_PRIORITIES: Final = {b"%d" % n: n - 5 for n in range(1, 10)}  #: the engine's, whose default is 0


class PushBody(msgspec.Struct, gc=False):
    """A job as a client sends it. Members of any type are left undecoded."""

    jid: str | None = None
    jobtype: str | None = None
    args: msgspec.Raw = _NULL
    queue: str | None = None
    priority: msgspec.Raw = _NULL  #: other integers are clamped to 1-9, other types ignored (faktory.md section 13)
    retry: Int64 | None = None
    reserve_for: Int64 | None = None
    at: str | None = None
    backtrace: Int64 | None = None
    created_at: str | None = None
    custom: msgspec.Raw = _NULL
    failure: FailureBody | None = None


#: The errors of the decoder
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_one = msgspec.json.Decoder(PushBody).decode
decode_many = msgspec.json.Decoder(list[PushBody]).decode
_quote = msgspec.json.Encoder().encode


def read_one(body: bytes) -> PushBody:
    try:
        if not body.isascii():
            body.decode()  # the decoder does not check args and custom
        return _decode_one(body)
    except UNREADABLE as error:
        raise InvalidJob(f"invalid JSON: {error}") from error


def read_checked(body: memoryview) -> PushBody:
    """Like `read_one`, for text that is known to be UTF-8."""
    try:
        return _decode_one(body)
    except UNREADABLE as error:
        raise InvalidJob(f"invalid JSON: {error}") from error


def read_many(body: bytes) -> list[PushBody]:
    try:
        if not body.isascii():
            body.decode()
        return decode_many(body)
    except UNREADABLE as error:
        raise InvalidJob(f"invalid JSON: {error}") from error


@lru_cache(maxsize=10_000)
def _usual(kind: str, queue: str, retry: int, reserve_for: int) -> Policy | None:
    """The policy of a job with short names. None: the job needs all checks."""
    if not kind or reserve_for > RESERVE_AT_MOST or QUEUE_NAME.fullmatch(queue) is None:
        return None
    return policy_for(retry, reserve_for)


def spec(body: PushBody, now: Now) -> Spec:
    """Raises InvalidJob."""
    jid, kind, args, queue = body.jid or "", body.jobtype or "", bytes(body.args), body.queue or "default"
    retry, reserve_for = RETRIES if body.retry is None else body.retry, body.reserve_for or 0
    custom = b"" if body.custom is _NULL else check_custom(bytes(body.custom))
    due, own = 0.0, None
    if (
        len(args) <= SHORT_JSON
        and args[0] == 0x5B
        and len(jid) >= 8
        and len(jid) + len(kind) <= SHORT_NAME
        and len(queue) <= SHORT_NAME
        and not body.at
    ):
        own = _usual(kind, queue, retry, reserve_for)
    if own is None:
        due = check_job(body.at or "", jid, kind, args, queue, reserve_for)
        own = policy_for(retry, reserve_for)
    protocol_data, priority = _PLAIN, 0
    raw = body.priority
    if raw is not _NULL:
        text = bytes(raw)
        clamped = _PRIORITIES[text] if text in _PRIORITIES else _clamp_priority(text)
        if clamped is not None:
            protocol_data, priority = _WITH_PRIORITY, clamped
    if body.created_at or body.backtrace or body.at:
        protocol_data = FaktoryData(body.created_at or "", body.at or "", body.backtrace or 0, protocol_data.priority)
    extra, failures = None, 0
    if custom:
        extra = Extra(custom, protocol_data, None, read_custom(custom, kind, args, queue, due, now))
    elif protocol_data is not _PLAIN:
        extra = Extra(b"", protocol_data)
    if body.failure is not None:
        failures, error = pushed_failure(body.failure, now)
        extra = Extra(custom, protocol_data, error, None if extra is None else extra.links)
    return Spec(jid, queue, kind, args, _JSON, priority, own, due, extra, failures)


def _clamp_priority(text: bytes) -> int | None:
    """None unless it is an integer. The number is not converted: it may have any number of digits."""
    if not text.removeprefix(b"-").isdigit():
        return None
    return -4 if text.startswith((b"-", b"0")) else 4


_PLAIN: Final = FaktoryData()
_WITH_PRIORITY: Final = FaktoryData(priority=True)


def show(job: Job) -> bytes:
    """The job as Faktory shows it: compact, in Faktory's key order (faktory.md section 4.4), args and custom exactly as
    pushed."""
    policy, extra = job.policy, job.extra
    protocol_data, failure, custom = _PLAIN, b"", b""
    if extra is not None:
        protocol_data = extra.protocol_data if type(extra.protocol_data) is FaktoryData else _PLAIN
        if extra.error is not None:
            failure = b'"failure":%b,' % shown(extra.error, job.failures, policy.max_failures)
        if extra.custom:
            custom = b'"custom":%b,' % extra.custom
    since = b'"%b"' % stamp(job.since).encode()
    created = since if job.created == job.since else b'"%b"' % stamp(job.created).encode()
    return (
        b'{"retry":%d,%b%b"jid":%b,"queue":%b,%b"jobtype":%b,"created_at":%b,%b%b"args":%b%b%b}'
        % (
            policy.max_failures,
            failure,
            custom,
            _quote(job.jid),
            _quote(job.queue),  # other protocols allow any character
            b'"priority":%d,' % min(max(job.priority + 5, 1), 9) if protocol_data.priority else b"",
            _quote(job.kind),
            _quote(protocol_data.created_at) if protocol_data.created_at else created,
            b'"enqueued_at":%b,' % since if job.sort_key is not None or job.attempts else b"",
            b'"at":%b,' % _quote(protocol_data.at) if protocol_data.at else b"",
            job.payload if job.form is _JSON and job.payload[:1] == b"[" else as_args(job),  # saves the call
            b',"reserve_for":%d' % policy.lease_s if policy.lease_s else b"",
            b',"backtrace":%d' % protocol_data.backtrace if protocol_data.backtrace else b"",
        )
    )
