"""Resqu's job payloads (protocol page, Resqu 3): read and checked.

Upstream checks nothing when a job is pushed and loses what its server cannot read; here the caller is told. Nothing of
`includePath`, `environment` and `class` is looked at beyond its type: they are a worker's affair.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import msgspec

from crossdock.protocols.json import too_deep
from crossdock.protocols.redis.resp.values import Error

#: MODEL section 12.
NAME_BYTES: Final = 255

#: Characters that cannot have more bytes than a name may.
SHORT: Final = NAME_BYTES // 4

#: A delay longer than this is a mistake, and so is a time later than the year 36812.
SECONDS_AT_MOST: Final = 100 * 366 * 86_400
LATEST: Final = 2**40

FAILS_AT_MOST: Final = 2**31 - 1

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=SHORT)]

_JOB: Final = {"kind": "class", "source": "sourceId", "monitored": "isMonitored", "fails": "failCount"}
_PLAN: Final = {"jid": "id", "next_run": "nextRun", "interval": "recurrenceInterval"}

#: The bytes of a part that the decoder left as it is; `bytes` takes four times as long.
as_bytes: Final[Callable[[msgspec.Raw], bytes]] = msgspec.json.Encoder().encode


class Unique(msgspec.Struct, gc=False, rename={"deferrable_s": "deferrableBy"}):
    uid: _Name
    deferrable_s: Annotated[int, msgspec.Meta(ge=0, le=SECONDS_AT_MOST)] | None = None  #: None: it is not


class Given(msgspec.Struct, gc=False, rename=_JOB):
    """A job without an id: delayed, deferred."""

    kind: _Name
    source: _Name
    name: _Name  #: empty: the text says none, and it is that of the class
    args: msgspec.Raw = msgspec.Raw()  #: an object or an array; empty: there are none
    unique: Unique | None = None
    monitored: bool = False
    fails: Annotated[int, msgspec.Meta(ge=0, le=FAILS_AT_MOST)] = 0
    includePath: str = ""  # noqa: N815 - the protocol's own name
    environment: dict[str, str] | None = None


class Queued(Given, gc=False, kw_only=True, rename={"jid": "id"}):
    jid: _Name
    queue_time: float


class Planned(Given, gc=False, kw_only=True, rename=_PLAN):
    jid: _Name  #: of the plan
    next_run: Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
    interval: Annotated[str, msgspec.Meta(min_length=1)]


#: MODEL section 12.
DEPTH: Final = 64

#: What PHP takes for false: such members are left out by client and server.
_EMPTY: Final = (None, False, 0, "", "0")
_EMPTY_TEXTS: Final = frozenset({b"null", b"false", b"0", b'""', b'"0"'})
_NONE: Final = msgspec.Raw()


class _Shape(msgspec.Struct, rename={"source": "sourceId", "class_": "class", "monitored": "isMonitored"}):
    """As it may come: types are checked one by one, so that an error can name the member."""

    class_: Any = None
    source: Any = None
    name: Any = None
    args: msgspec.Raw = _NONE
    unique: msgspec.Raw = _NONE
    monitored: Any = None
    includePath: Any = None  # noqa: N815 - the protocol's own name
    environment: msgspec.Raw = _NONE
    failCount: Any = None  # noqa: N815
    id: Any = None
    queue_time: Any = None
    nextRun: Any = None  # noqa: N815
    recurrenceInterval: Any = None  # noqa: N815


_decode_shape: Final = msgspec.json.Decoder(_Shape).decode
_any: Final = msgspec.json.Decoder().decode


def checked_base(text: bytes) -> Given:
    return Given(**_job(_shape(text)))


def checked_queued(text: bytes) -> Queued:
    shape = _shape(text)
    if type(shape.queue_time) is not float and type(shape.queue_time) is not int:
        raise _wrong("queue_time", "a number", shape.queue_time)
    return Queued(**_job(shape), jid=_name("id", shape.id), queue_time=shape.queue_time)


def checked_planned(text: bytes) -> Planned:
    shape = _shape(text)
    run, interval = shape.nextRun, shape.recurrenceInterval
    if type(run) is not int or not 0 <= run <= LATEST:
        raise _wrong("nextRun", "a whole number of seconds", run)
    if not isinstance(interval, str) or not interval:
        raise _wrong("recurrenceInterval", "a string", interval)
    return Planned(**_job(shape), jid=_name("id", shape.id), next_run=run, interval=interval)


def _shape(text: bytes) -> _Shape:
    if not text:
        raise Error("ERR invalid job: the payload is empty; were its args valid UTF-8?")
    try:
        if not text.isascii():
            text.decode()  # the decoder does not look into args
        shape: _Shape = _decode_shape(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Error(f"ERR invalid job: the payload is not a JSON object: {error}") from None
    if too_deep(text, DEPTH):
        raise Error(f"ERR invalid job: nested deeper than {DEPTH}")
    return shape


def _job(shape: _Shape) -> dict[str, Any]:
    """The members of `Given`."""
    kind = _name("class", shape.class_)
    source = _name("sourceId", shape.source)
    named = shape.name is not None and shape.name not in _EMPTY
    unique = as_bytes(shape.unique)
    _optional("includePath", shape.includePath, str, "a string")
    _optional("isMonitored", shape.monitored, bool, "a boolean")
    _container("environment", shape.environment, "an object")
    fails = shape.failCount or 0
    if type(fails) is not int or not 0 <= fails <= FAILS_AT_MOST:
        raise _wrong("failCount", "a count", shape.failCount)
    return {
        "kind": kind,
        "source": source,
        "name": _name("name", shape.name) if named else "",
        "args": _container("args", shape.args, "an object or an array"),
        "unique": _unique(_any(unique)) if unique[:1] == b"{" else None,
        "monitored": shape.monitored is True,
        "fails": fails,
    }


def _container(member: str, part: msgspec.Raw, what: str) -> msgspec.Raw:
    text = as_bytes(part)
    if text[:1] in (b"{", b"[", b""):
        return part
    if text in _EMPTY_TEXTS:
        return _NONE
    raise Error(f"ERR invalid job: '{member}' must be {what}, not {_excerpt(text.decode())}")


def _unique(value: dict[str, Any]) -> Unique | None:
    """Without a uid nothing of it counts, nor with one that PHP takes for false."""
    if value.get("uid") in _EMPTY:
        return None
    uid = _name("unique.uid", value["uid"])
    by = value.get("deferrableBy")
    if by is None:
        return Unique(uid)
    if not isinstance(by, int) or isinstance(by, bool) or by > SECONDS_AT_MOST:
        raise _wrong("unique.deferrableBy", "a whole number of seconds", by)
    return Unique(uid, max(0, by))


def _name(member: str, value: Any) -> str:
    if type(value) is not str or not value:
        raise _wrong(member, "a string", value)
    if (len(value) > SHORT and len(value.encode()) > NAME_BYTES) or "\0" in value:
        raise Error(f"ERR invalid job: '{member}' has more than {NAME_BYTES} bytes, or NUL in it")
    return value


def _optional(member: str, value: Any, kind: type, what: str) -> None:
    if value not in _EMPTY and not isinstance(value, kind):
        raise _wrong(member, what, value)


def _wrong(member: str, what: str, value: Any) -> Error:
    if value is None:
        return Error(f"ERR invalid job: '{member}' is missing")
    return Error(f"ERR invalid job: '{member}' must be {what}, not {_excerpt(msgspec.json.encode(value).decode())}")


def _excerpt(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


_BEGINS: Final = frozenset({b"{", b"[", b""})

_decode: Final = msgspec.json.Decoder(Given).decode
_decode_queued: Final = msgspec.json.Decoder(Queued).decode
_decode_planned: Final = msgspec.json.Decoder(Planned).decode

G = TypeVar("G", bound=Given)


def base(text: bytes) -> Given:
    """A job without an id."""
    return _usual(_decode, text) or checked_base(text)


def queued(text: bytes) -> Queued:
    return _usual(_decode_queued, text) or checked_queued(text)


def planned(text: bytes) -> Planned:
    return _usual(_decode_planned, text) or checked_planned(text)


def _usual(decode: Callable[[bytes], G], text: bytes) -> G | None:
    """As clients write it: the decoder finds nothing wrong, nor is anything where it does not look. Else None."""
    if not text.isascii() or b"\\u0000" in text:
        return None
    try:
        given = decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if as_bytes(given.args)[:1] not in _BEGINS or too_deep(text, DEPTH):
        return None
    return given if given.unique is None or given.unique.uid != "0" else None
