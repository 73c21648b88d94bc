"""A job's failure: as FAIL tells it, as a client brings it along with a PUSH, and as FETCH shows it (page 4.6)."""

from typing import Final

import msgspec

from crossdock.model.clock import Now
from crossdock.model.commands.core import Claim, Fail
from crossdock.model.job import Failure
from crossdock.protocols.faktory.messages import FailBody, Int64
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.timestamps import parse, stamp

BACKTRACE_AT_MOST: Final = 50
BROUGHT_BYTES: Final = 1024 * 1024  #: of a backtrace, as FAIL's
MESSAGE_BYTES: Final = 1_000
ERRTYPE_BYTES: Final = 100

_UNKNOWN: Final = "unknown"
_NULL: Final = msgspec.Raw(b"null")
_lines = msgspec.json.Decoder(list[str] | None).decode
_quote = msgspec.json.Encoder().encode


class FailureBody(msgspec.Struct):
    """A failure a client brings along (4.1): harmless, kept."""

    failed_at: str | None = None
    next_at: str | None = None
    message: str | None = None
    errtype: str | None = None
    backtrace: msgspec.Raw = _NULL  #: of millions of lines that are not kept none is built
    retry_count: Int64 | None = None


def fail_command(body: FailBody, jid: str, claim: Claim) -> Fail:
    return Fail(
        jid,
        claim,
        _cut(body.errtype, ERRTYPE_BYTES),
        _cut(body.message, MESSAGE_BYTES),
        tuple(body.backtrace or ())[:BACKTRACE_AT_MOST],
    )


def brought(body: FailureBody, now: Now) -> tuple[int, Failure]:
    """How often the job has failed, and how the last time. It failed before it was pushed: the latest time that can be
    is taken for one that nobody can read. Raises InvalidJob."""
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
    """A lease that ran out is told in Faktory's words (6.4); workers of other doors may have told nothing."""
    group, message = (
        ("ReservationExpired", "Faktory job reservation expired") if error.lost else (error.group, error.message)
    )
    members: dict[str, object] = {"failed_at": stamp(error.first_at)}
    if error.next_at:
        members["next_at"] = stamp(error.next_at)
    members |= {"message": message or _UNKNOWN, "errtype": group or _UNKNOWN}
    if error.backtrace:
        members["backtrace"] = error.backtrace
    count = max(failures - 1, 0)  # one that was brought back begins to count anew, and keeps its error
    members |= {"retry_count": count, "remaining": max(retry - count, 0) if retry > 0 else retry}
    return _quote(members)


def _backtrace(text: msgspec.Raw) -> tuple[str, ...]:
    if memoryview(text).nbytes > BROUGHT_BYTES:
        raise InvalidJob(f"failure.backtrace must not be longer than {BROUGHT_BYTES} bytes")
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
    """Trimmed and cut by bytes; a character cut in two shows as U+FFFD."""
    trimmed = (text or "").strip()
    if len(trimmed) * 4 > limit:
        trimmed = trimmed.encode("utf-8", "replace")[:limit].decode("utf-8", "replace")
    return trimmed or _UNKNOWN
