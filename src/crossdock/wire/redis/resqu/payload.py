"""Resqu's job payloads (protocol page, Resqu 3): read, checked, and refused with what is wrong with them.

Upstream checks nothing when a job is pushed and loses what its server cannot read; here the caller is told. Nothing of
`includePath`, `environment` and `class` is looked at beyond its type: they are a worker's affair.
"""

from typing import Annotated, Any, Final

import msgspec

from crossdock.wire.json import too_deep
from crossdock.wire.redis.values import Error

#: MODEL section 12.
NAME_BYTES: Final = 255
DEPTH: Final = 64

#: A delay longer than this is a mistake.
SECONDS_AT_MOST: Final = 100 * 366 * 86_400

#: What PHP takes for false: such members are left out by client and server.
_EMPTY: Final = (None, False, 0, "", "0")
_BEGINS: Final = frozenset({b"{", b"[", b""})
_EMPTY_TEXTS: Final = frozenset({b"null", b"false", b"0", b'""', b'"0"'})


class _Shape(msgspec.Struct, rename={"source": "sourceId", "class_": "class", "monitored": "isMonitored"}):
    """As it may come: types are checked one by one, so that an error can name the member."""

    class_: Any = None
    source: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw()
    unique: msgspec.Raw = msgspec.Raw()
    monitored: Any = None
    includePath: Any = None  # noqa: N815 - the protocol's own name
    environment: msgspec.Raw = msgspec.Raw()
    failCount: Any = None  # noqa: N815
    id: Any = None
    queue_time: Any = None
    nextRun: Any = None  # noqa: N815
    recurrenceInterval: Any = None  # noqa: N815


class Given(msgspec.Struct, frozen=True, gc=False):
    """A payload that was read. The text itself is kept beside it, as it was pushed."""

    kind: str  #: class
    source: str
    name: str
    args: bytes  #: JSON; empty: none
    uid: str  #: of its lock; empty: it has none
    deferrable_s: int | None  #: None: it is not
    monitored: bool
    fails: int
    jid: str  #: of a queued job, or a plan's id; empty: it has none
    named: bool = True  #: the text says its name; else it is that of the class
    next_run: int = 0
    interval: str = ""


#: Characters that cannot have more bytes than a name may.
_SHORT: Final = NAME_BYTES // 4
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=_SHORT)]


class _Usual(msgspec.Struct, rename={"source": "sourceId", "class_": "class", "monitored": "isMonitored"}, gc=False):
    """As clients write it: the decoder itself finds nothing wrong. What it refuses is looked at closely."""

    class_: _Name
    source: _Name
    name: _Name
    id: _Name
    queue_time: float
    args: msgspec.Raw = msgspec.Raw()
    unique: msgspec.Raw = msgspec.Raw()
    monitored: bool = False
    includePath: str = ""  # noqa: N815
    environment: msgspec.Raw = msgspec.Raw()
    failCount: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] = 0  # noqa: N815


_decode_usual: Final = msgspec.json.Decoder(_Usual).decode
_decode: Final = msgspec.json.Decoder(_Shape).decode
_any: Final = msgspec.json.Decoder().decode


def base(text: bytes) -> Given:
    """A job without id: delayed, deferred."""
    return _given(_shape(text), "")


def queued(text: bytes) -> Given:
    if text.isascii() and b"\\u0000" not in text:
        try:
            usual: _Usual = _decode_usual(text)
        except msgspec.DecodeError:
            return _queued(text)
        args = bytes(usual.args)
        if (
            args[:1] in _BEGINS
            and not bytes(usual.unique)
            and not bytes(usual.environment)
            and not too_deep(args, DEPTH)
        ):
            kind, source, name, jid = usual.class_, usual.source, usual.name, usual.id
            return Given(kind, source, name, args, "", None, usual.monitored, usual.failCount, jid)
    return _queued(text)


def _queued(text: bytes) -> Given:
    shape = _shape(text)
    if type(shape.queue_time) is not float and type(shape.queue_time) is not int:
        raise _wrong("queue_time", "a number", shape.queue_time)
    return _given(shape, _name("id", shape.id))


def planned(text: bytes) -> Given:
    shape = _shape(text)
    run, interval = shape.nextRun, shape.recurrenceInterval
    if type(run) is not int or not 0 <= run <= 2**40:
        raise _wrong("nextRun", "a whole number of seconds", run)
    if not isinstance(interval, str) or not interval:
        raise _wrong("recurrenceInterval", "a string", interval)
    return _given(shape, _name("id", shape.id), run, interval)


def _shape(text: bytes) -> _Shape:
    if not text:
        raise Error("ERR invalid job: the payload is empty; were its args valid UTF-8?")
    try:
        if not text.isascii():
            text.decode()  # the decoder does not look into args
        shape: _Shape = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Error(f"ERR invalid job: the payload is not a JSON object: {error}") from None
    if too_deep(text, DEPTH):
        raise Error(f"ERR invalid job: nested deeper than {DEPTH}")
    return shape


def _given(shape: _Shape, jid: str, run: int = 0, interval: str = "") -> Given:
    kind = _name("class", shape.class_)
    source = _name("sourceId", shape.source)
    named = shape.name is not None and shape.name not in _EMPTY
    name = _name("name", shape.name) if named else kind
    unique = bytes(shape.unique)
    uid, deferrable = _unique(_any(unique)) if unique[:1] == b"{" else ("", None)
    if shape.includePath is not None:
        _optional("includePath", shape.includePath, str, "a string")
    if shape.monitored is not None:
        _optional("isMonitored", shape.monitored, bool, "a boolean")
    _container("environment", bytes(shape.environment), "an object")
    args = _container("args", bytes(shape.args), "an object or an array")
    fails = shape.failCount or 0
    if type(fails) is not int or not 0 <= fails < 2**31:
        raise _wrong("failCount", "a count", shape.failCount)
    return Given(kind, source, name, args, uid, deferrable, shape.monitored is True, fails, jid, named, run, interval)


def _container(member: str, text: bytes, what: str) -> bytes:
    if text[:1] in (b"{", b"[") or not text:
        return text
    if text in _EMPTY_TEXTS:
        return b""
    raise Error(f"ERR invalid job: '{member}' must be {what}, not {_excerpt(text.decode())}")


def _unique(value: dict[str, Any]) -> tuple[str, int | None]:
    """Without a uid nothing of it counts, nor with one that PHP takes for false."""
    if value.get("uid") in _EMPTY:
        return "", None
    uid = _name("unique.uid", value["uid"])
    by = value.get("deferrableBy")
    if by is None:
        return uid, None
    if not isinstance(by, int) or isinstance(by, bool) or by > SECONDS_AT_MOST:
        raise _wrong("unique.deferrableBy", "a whole number of seconds", by)
    return uid, max(0, by)


def _name(member: str, value: Any) -> str:
    if type(value) is not str or not value:
        raise _wrong(member, "a string", value)
    if (len(value) > _SHORT and len(value.encode()) > NAME_BYTES) or "\0" in value:
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
