"""Parses and validates Resqu's job payloads (resqu.md section 3).

Redis accepts any payload, and Resqu's server drops those it cannot read; here the client receives an error. Only the
types of `includePath`, `environment` and `class` are checked, because their values concern the worker.

The structs below are the schema. msgspec decodes the payloads of the usual clients. Any other payload is read member by
member, with the reader that the field's type names. The readers accept what PHP takes for false, and their errors name
the member.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import msgspec
from msgspec import Meta

from crossdock.protocols.job_spec import JSON_DEPTH, NAME_BYTES, SHORT_NAME
from crossdock.protocols.payload import too_deep
from crossdock.protocols.redis.resp.values import Error

#: Longest delay, and latest time (in the year 36812).
SECONDS_AT_MOST: Final = 100 * 366 * 86_400
LATEST: Final = 2**40

FAILS_AT_MOST: Final = 2**31 - 1

#: What PHP takes for false. Client and server omit such members.
_EMPTY: Final = (None, False, 0, "", "0")
_EMPTY_TEXTS: Final = frozenset({b"null", b"false", b"0", b'""', b'"0"'})
_NONE: Final = msgspec.Raw()
_BEGINS: Final = frozenset({b"{", b"[", b""})

#: The bytes of a raw part. `bytes` takes four times as long.
as_bytes: Final[Callable[[msgspec.Raw], bytes]] = msgspec.json.Encoder().encode

_any: Final = msgspec.json.Decoder().decode


# Readers of single members: `read(member, value)`. A missing member has the value None, a raw member its text.


def _name(member: str, value: Any) -> str:
    if type(value) is not str or not value:
        raise _wrong(member, "a string", value)
    if (len(value) > SHORT_NAME and len(value.encode()) > NAME_BYTES) or "\0" in value:
        raise Error(f"ERR invalid job: '{member}' may have at most {NAME_BYTES} bytes and no NUL")
    return value


def _optional_name(member: str, value: Any) -> str:
    return "" if value in _EMPTY else _name(member, value)


def _optional_text(member: str, value: Any) -> str:
    if value not in _EMPTY and not isinstance(value, str):
        raise _wrong(member, "a string", value)
    return value or ""


def _optional_flag(member: str, value: Any) -> bool:
    if value not in _EMPTY and value is not True:
        raise _wrong(member, "a boolean", value)
    return value is True


def _count(member: str, value: Any) -> int:
    count = value or 0
    if type(count) is not int or not 0 <= count <= FAILS_AT_MOST:
        raise _wrong(member, "a count", value)
    return count


def _number(member: str, value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _wrong(member, "a number", value)
    return value


def _second(member: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LATEST:
        raise _wrong(member, "a whole number of seconds", value)
    return value


def _text(member: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(member, "a string", value)
    return value


def _arguments(member: str, part: bytes) -> msgspec.Raw:
    return _container(member, part, "an object or an array")


def _environment(member: str, part: bytes) -> None:
    _container(member, part, "an object")


def _container(member: str, part: bytes, what: str) -> msgspec.Raw:
    if part[:1] in _BEGINS:
        return msgspec.Raw(part)
    if part in _EMPTY_TEXTS:
        return _NONE
    raise Error(f"ERR invalid job: '{member}' must be {what}, not {_excerpt(part.decode())}")


def _unique(member: str, part: bytes) -> "Unique | None":
    """The member is ignored without a uid, or if PHP takes the uid for false."""
    value = _any(part) if part[:1] == b"{" else {}
    if value.get("uid") in _EMPTY:
        return None
    uid = _name(f"{member}.uid", value["uid"])
    by = value.get("deferrableBy")
    if by is None:
        return Unique(uid)
    if type(by) is not int or by > SECONDS_AT_MOST:
        raise _wrong(f"{member}.deferrableBy", "a whole number of seconds", by)
    return Unique(uid, max(0, by))


def _wrong(member: str, what: str, value: Any) -> Error:
    if value is None:
        return Error(f"ERR invalid job: '{member}' is missing")
    return Error(f"ERR invalid job: '{member}' must be {what}, not {_excerpt(msgspec.json.encode(value).decode())}")


def _excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


def _read_by(read: Callable[[str, Any], Any], *, raw: bool = False, **bounds: Any) -> Meta:
    """Bounds for the decoder, and the reader for a member that violates them."""
    return Meta(**bounds, extra={"read": read, "raw": raw})


_Name = Annotated[str, _read_by(_name, min_length=1, max_length=SHORT_NAME)]


class Unique(msgspec.Struct, gc=False, rename={"deferrable_s": "deferrableBy"}):
    uid: Annotated[str, Meta(min_length=1, max_length=SHORT_NAME)]
    deferrable_s: Annotated[int, Meta(ge=0, le=SECONDS_AT_MOST)] | None = None  #: None: not deferrable


_JOB: Final = {"kind": "class", "source": "sourceId", "monitored": "isMonitored", "fails": "failCount"}
_PLAN: Final = {"jid": "id", "next_run": "nextRun", "interval": "recurrenceInterval"}


class Payload(msgspec.Struct, gc=False, rename=_JOB):
    """A job without an id: delayed or deferred."""

    kind: _Name
    source: _Name
    #: Empty if the text has none; the class is used instead.
    name: Annotated[str, _read_by(_optional_name, min_length=1, max_length=SHORT_NAME)]
    args: Annotated[msgspec.Raw, _read_by(_arguments, raw=True)] = _NONE  #: an object, an array, or empty
    unique: Annotated[Unique | None, _read_by(_unique, raw=True)] = None
    monitored: Annotated[bool, _read_by(_optional_flag)] = False
    fails: Annotated[int, _read_by(_count, ge=0, le=FAILS_AT_MOST)] = 0
    includePath: Annotated[str, _read_by(_optional_text)] = ""  # noqa: N815 - the protocol's own name
    environment: Annotated[dict[str, str] | None, _read_by(_environment, raw=True)] = None


class QueuedPayload(Payload, gc=False, kw_only=True, rename={"jid": "id"}):
    jid: _Name
    queue_time: Annotated[float, _read_by(_number)]


class PlannedPayload(Payload, gc=False, kw_only=True, rename=_PLAN):
    jid: _Name  #: id of the plan
    next_run: Annotated[int, _read_by(_second, ge=0, le=LATEST)]
    interval: Annotated[str, _read_by(_text, min_length=1)]


class _Field(NamedTuple):
    name: str
    member: str
    read: Callable[[str, Any], Any]
    raw: bool  #: the reader takes the JSON text


class Schema(NamedTuple):
    """How one kind of payload is decoded: at once, or member by member."""

    kind: type[Payload]
    decode: Callable[[bytes], Any]
    fields: tuple[_Field, ...]
    decode_parts: Callable[[bytes], Any]  #: the same members, of any type


def _schema(kind: type[Payload]) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    fields = []
    for each in msgspec.structs.fields(kind):
        meta = next(one for one in hints[each.name].__metadata__ if isinstance(one, Meta))
        extra = meta.extra or {}
        fields.append(_Field(each.name, each.encode_name, extra["read"], extra["raw"]))
    parts = msgspec.defstruct(
        f"{kind.__name__}Parts",
        [(field.name, msgspec.Raw if field.raw else Any, _NONE if field.raw else None) for field in fields],
        rename={field.name: field.member for field in fields},
    )
    return Schema(kind, msgspec.json.Decoder(kind).decode, tuple(fields), msgspec.json.Decoder(parts).decode)


BASE: Final = _schema(Payload)
QUEUED: Final = _schema(QueuedPayload)
PLANNED: Final = _schema(PlannedPayload)


def base(text: bytes) -> Payload:
    """Parse a job without an id."""
    found: Payload = _usual(BASE, text) or by_member(BASE, text)
    return found


def queued(text: bytes) -> QueuedPayload:
    found: QueuedPayload = _usual(QUEUED, text) or by_member(QUEUED, text)
    return found


def planned(text: bytes) -> PlannedPayload:
    found: PlannedPayload = _usual(PLANNED, text) or by_member(PLANNED, text)
    return found


def _usual(schema: Schema, text: bytes) -> Any:
    """Decode a payload as the usual clients write it. None if it must be read member by member."""
    if not text.isascii() or b"\\u0000" in text:
        return None
    try:
        payload = schema.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if as_bytes(payload.args)[:1] not in _BEGINS or too_deep(text, JSON_DEPTH):
        return None
    return payload if payload.unique is None or payload.unique.uid != "0" else None


def by_member(schema: Schema, text: bytes) -> Any:
    """Read a payload member by member. The error names the first invalid member."""
    if not text:
        raise Error("ERR invalid job: the payload is empty; were its args valid UTF-8?")
    try:
        if not text.isascii():
            text.decode()  # the decoder does not validate args
        parts = schema.decode_parts(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Error(f"ERR invalid job: the payload is not a JSON object: {error}") from None
    if too_deep(text, JSON_DEPTH):
        raise Error(f"ERR invalid job: nested deeper than {JSON_DEPTH}")
    values = {}
    for field in schema.fields:
        value = getattr(parts, field.name)
        values[field.name] = field.read(field.member, as_bytes(value) if field.raw else value)
    return schema.kind(**values)
