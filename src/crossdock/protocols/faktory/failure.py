"""A job's failure: as FAIL reports it, as a PUSH may include it, and as FETCH shows it (faktory.md section 4.6)."""

from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Fail
from crossdock.model.job import Failure
from crossdock.protocols.faktory.messages import Int64
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.timestamps import parse, stamp

BACKTRACE_AT_MOST: Final = 50
PUSHED_BACKTRACE_BYTES: Final = 1024 * 1024  #: as much as a FAIL may have
MESSAGE_BYTES: Final = 1_000
ERRTYPE_BYTES: Final = 100

_UNKNOWN: Final = "unknown"
_NULL: Final = msgspec.Raw(b"null")
_lines = msgspec.json.Decoder(list[str] | None).decode
_quote = msgspec.json.Encoder().encode


class FailBody(msgspec.Struct):
    """The body of FAIL."""

    jid: str | None = None
    errtype: str | None = None
    message: str | None = None
    backtrace: list[str] | None = None


class FailureBody(msgspec.Struct):
    """The `failure` member of a pushed job (faktory.md section 4.1). It is kept."""

    failed_at: str | None = None
    next_at: str | None = None
    message: str | None = None
    errtype: str | None = None
    backtrace: msgspec.Raw = _NULL  #: decoded only within the size limit
    retry_count: Int64 | None = None


def fail_command(body: FailBody, jid: str, claim: Claim) -> Fail:
    return Fail(
        jid,
        claim,
        _cut(body.errtype, ERRTYPE_BYTES),
        _cut(body.message, MESSAGE_BYTES),
        tuple(body.backtrace or ())[:BACKTRACE_AT_MOST],
    )


def pushed_failure(body: FailureBody, now: Now) -> tuple[int, Failure]:
    """The number of failures and the last failure of a pushed job. The time of the push replaces an unreadable
    `failed_at`. Raises InvalidJob."""
    first_at = _lenient(body.failed_at, now.wall)
    error = Failure(
        body.errtype or _UNKNOWN,
        body.message or _UNKNOWN,
        _backtrace(body.backtrace),
        first_at,
        first_at,
        _lenient(body.next_at, 0.0),
        False,
    )
    return max(0, body.retry_count or 0) + 1, error


def shown(error: Failure, failures: int, retry: int) -> bytes:
    """As JSON. An expired lease has Faktory's text (faktory.md section 6.4). Other protocols may report no text."""
    group, message = (
        ("ReservationExpired", "Faktory job reservation expired") if error.lost else (error.group, error.message)
    )
    members: dict[str, object] = {"failed_at": stamp(error.first_at)}
    if error.next_at:
        members["next_at"] = stamp(error.next_at)
    members |= {"message": message or _UNKNOWN, "errtype": group or _UNKNOWN}
    if error.backtrace:
        members["backtrace"] = error.backtrace
    count = max(failures - 1, 0)  # a revived job starts at 0 failures and keeps its error
    members |= {"retry_count": count, "remaining": max(retry - count, 0) if retry > 0 else retry}
    return _quote(members)


def _backtrace(text: msgspec.Raw) -> tuple[str, ...]:
    if memoryview(text).nbytes > PUSHED_BACKTRACE_BYTES:
        raise InvalidJob(f"failure.backtrace must not be longer than {PUSHED_BACKTRACE_BYTES} bytes")
    try:
        return tuple(_lines(text) or ())[:BACKTRACE_AT_MOST]
    except msgspec.DecodeError as error:
        raise InvalidJob(f"invalid JSON: {error} of failure.backtrace") from error


def _lenient(text: str | None, otherwise: float) -> float:
    try:
        return parse(text) if text else otherwise
    except (ValueError, OverflowError):
        return otherwise


def _cut(text: str | None, limit: int) -> str:
    """Trim and cut to a number of bytes. An incomplete last character becomes U+FFFD."""
    trimmed = (text or "").strip()
    if len(trimmed) * 4 > limit:
        trimmed = trimmed.encode("utf-8", "replace")[:limit].decode("utf-8", "replace")
    return trimmed or _UNKNOWN
