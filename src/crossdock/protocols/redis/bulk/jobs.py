"""Parses the jobs of a bulk load: a JSON array of objects, or a msgpack array of arrays.

Retries and reservation times follow Faktory's rules. Names may contain any character. A payload is any JSON value or
raw bytes. One invalid job refuses the whole call, which adds no job then.
"""

from typing import Annotated, Any, Final

import msgspec

from crossdock.model.job import Extra, Form, Spec
from crossdock.model.policies import Policy
from crossdock.protocols.job_spec import (
    JSON_DEPTH,
    NAME_BYTES,
    RESERVE_AT_MOST,
    RETRIES,
    SHORT_JSON,
    SHORT_NAME,
    policy_for,
)
from crossdock.protocols.payload import too_deep
from crossdock.protocols.redis.keys.values import KIND_BYTES
from crossdock.protocols.redis.resp.values import Error
from crossdock.protocols.timestamps import parse

#: Jobs of one call. A call is one step, during which no other client is served.
JOBS_AT_MOST: Final = 5_000
TAGS_AT_MOST: Final = 100

_FAR: Final = 253_402_300_800.0  #: the year 10000

#: Bound once, because the lookup of an enum member costs as much as a call.
_JSON: Final = Form.JSON
_RAW: Final = Form.RAW

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Retry = Annotated[int, msgspec.Meta(ge=-1, le=1_000_000)]
_Reserve = Annotated[int, msgspec.Meta(ge=0, le=RESERVE_AT_MOST)]
_Priority = int | float
_EMPTY: Final = msgspec.Raw(b"[]")
_NULL: Final = msgspec.Raw(b"null")


class _Body(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A job as a JSON object."""

    jid: _Name
    kind: _Name
    queue: _Name = "default"
    args: msgspec.Raw = _EMPTY
    priority: _Priority = 0
    at: float | str | None = None
    retry: _Retry = RETRIES
    reserve_for: _Reserve = 0
    custom: msgspec.Raw = _NULL
    tags: tuple[str, ...] | None = None
    replayed_from: str = ""


class _Row(msgspec.Struct, gc=False, array_like=True, forbid_unknown_fields=True):
    """A job as a msgpack array. Members at the end may be omitted."""

    jid: _Name
    queue: _Name
    kind: _Name
    args: Any = "[]"  #: JSON text, or raw bytes
    priority: _Priority = 0
    at: float | None = None
    retry: _Retry = RETRIES
    reserve_for: _Reserve = 0
    custom: str = ""
    tags: tuple[str, ...] | None = None
    replayed_from: str = ""


_bodies = msgspec.json.Decoder(list[_Body]).decode
_rows = msgspec.msgpack.Decoder(list[_Row]).decode
_as_json = msgspec.json.Decoder(msgspec.Raw).decode

_PLAIN: Final[Policy] = policy_for(RETRIES, 0)


def specs(text: bytes) -> list[Spec]:
    """Parse the jobs of one call. Raises Error."""
    try:
        if text[:1] in b"[ \t\r\n":  # no msgpack array begins with these bytes
            if not text.isascii():
                text.decode()  # the decoder does not validate args and custom
            bodies = _bodies(text)
            _count(len(bodies))
            return [_of_body(each) for each in bodies]
        rows = _rows(text)
        _count(len(rows))
        return [_of_row(each) for each in rows]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Error(f"ERR jobs must be a JSON array of objects or a msgpack array of arrays: {error}") from error


def _count(jobs: int) -> None:
    if jobs > JOBS_AT_MOST:
        raise Error(f"ERR {jobs} jobs in one call; send at most {JOBS_AT_MOST} at a time")


def _of_body(job: _Body) -> Spec:
    args = bytes(job.args)
    custom = b"" if job.custom is _NULL or job.custom == b"null" else bytes(job.custom)
    return _spec(job, args, _JSON, custom, _due(job.at) if job.at is not None else 0.0)


def _of_row(job: _Row) -> Spec:
    args = job.args
    custom = job.custom.encode() if job.custom else b""
    try:
        if custom:
            _as_json(custom)
        if type(args) is bytes:
            return _spec(job, args, _RAW, custom, job.at or 0.0)
        _as_json(args)
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise _wrong(job, f"args must be a JSON text or bytes, and custom a JSON text: {error}") from error
    return _spec(job, args.encode(), _JSON, custom, job.at or 0.0)


def _spec(job: _Body | _Row, args: bytes, form: Form, custom: bytes, due: float) -> Spec:
    jid, queue, kind = job.jid, job.queue, job.kind
    if len(args) > SHORT_JSON and form is _JSON and too_deep(args, JSON_DEPTH):
        raise _wrong(job, f"args are nested deeper than {JSON_DEPTH}")
    if len(jid) > SHORT_NAME or len(queue) > SHORT_NAME or len(kind) > SHORT_NAME:
        _check_names(job)
    if due and not 0.0 <= due < _FAR:
        raise _wrong(job, "at must be seconds since 1970, before the year 10000")
    priority = job.priority
    if priority and not -1e15 < priority < 1e15:
        raise _wrong(job, "priority must be a number between -1e15 and 1e15")
    extra = None
    if custom or job.tags or job.replayed_from:
        extra = _extra(job, custom)
    own = _PLAIN if job.retry == RETRIES and not job.reserve_for else policy_for(job.retry, job.reserve_for)
    return Spec(jid, queue, kind, args, form, priority, own, due, extra)


def _extra(job: _Body | _Row, custom: bytes) -> Extra:
    if custom and (custom[:1] != b"{" or too_deep(custom, JSON_DEPTH)):
        raise _wrong(job, f"custom must be a JSON object, not nested deeper than {JSON_DEPTH}")
    tags = tuple(dict.fromkeys(job.tags or ()))
    if len(tags) > TAGS_AT_MOST or any(len(tag.encode()) > NAME_BYTES for tag in tags):
        raise _wrong(job, f"a job may have at most {TAGS_AT_MOST} tags of at most {NAME_BYTES} bytes")
    if len(job.replayed_from.encode()) > NAME_BYTES:
        raise _wrong(job, f"replayed_from may have at most {NAME_BYTES} bytes")
    return Extra(custom, tags=tags, replayed_from=job.replayed_from)


def _check_names(job: _Body | _Row) -> None:
    for name, most in (("jid", NAME_BYTES), ("queue", NAME_BYTES), ("kind", KIND_BYTES)):
        if len(getattr(job, name).encode()) > most:
            raise _wrong(job, f"{name} may have at most {most} bytes")


def _due(at: float | str) -> float:
    if not isinstance(at, str):
        return at
    try:
        return parse(at)
    except (ValueError, OverflowError) as error:
        raise Error(
            f"ERR at must be seconds since 1970 or a time such as 2026-01-31T12:00:00Z, not {at[:40]!r}"
        ) from error


def _wrong(job: _Body | _Row, why: str) -> Error:
    return Error(f"ERR job {job.jid[:64]!r}: {why}")
