"""Values to bytes, in RESP2 or RESP3."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.protocols.redis.resp.values import Encoded, Error, Many, Null, Push, Scored, Simple, Value, Verbatim

_NULL: Final = (b"$-1\r\n", b"_\r\n")
_NULL_ARRAY: Final = (b"*-1\r\n", b"_\r\n")
_FLAT: Final = bytes.maketrans(b"\r\n", b"  ")

Add = Callable[[bytes], None]


def encode(value: Value, resp3: bool) -> bytes:
    """The usual replies are written at once; what is nested goes through the table."""
    one: Any = value
    kind = type(one)
    if kind is bytes:
        return b"$%d\r\n%b\r\n" % (len(one), one)
    if kind is int:
        return b":%d\r\n" % one
    if one is None:
        return _NULL[resp3]
    parts: list[bytes] = []
    _WRITE[kind](one, resp3, parts.append)
    return b"".join(parts)


def elements(values: Any, resp3: bool) -> bytes:
    """Some elements of an array, set or map, without its head."""
    parts: list[bytes] = []
    _each(values, resp3, parts.append)
    return b"".join(parts)


def _each(values: Any, resp3: bool, add: Add) -> None:
    for value in values:
        kind = type(value)
        if kind is bytes:
            add(b"$%d\r\n%b\r\n" % (len(value), value))
        else:
            _WRITE[kind](value, resp3, add)


def _bulk(value: bytes, resp3: bool, add: Add) -> None:
    add(b"$%d\r\n%b\r\n" % (len(value), value))


def _int(value: int, resp3: bool, add: Add) -> None:
    add(b":%d\r\n" % value)


def _bool(value: bool, resp3: bool, add: Add) -> None:
    add((b"#t\r\n" if value else b"#f\r\n") if resp3 else b":%d\r\n" % value)


def _float(value: float, resp3: bool, add: Add) -> None:
    text = b"%.17g" % value
    add(b",%b\r\n" % text if resp3 else b"$%d\r\n%b\r\n" % (len(text), text))


def _none(value: None, resp3: bool, add: Add) -> None:
    add(_NULL[resp3])


def _null(value: Null, resp3: bool, add: Add) -> None:
    add(_NULL_ARRAY[resp3])


def _simple(value: Simple, resp3: bool, add: Add) -> None:
    add(b"+%b\r\n" % value.text)


def _error(value: Error, resp3: bool, add: Add) -> None:
    add(b"-%b\r\n" % value.text.translate(_FLAT))


def _verbatim(value: Verbatim, resp3: bool, add: Add) -> None:
    text = value.text
    add(b"=%d\r\ntxt:%b\r\n" % (len(text) + 4, text) if resp3 else b"$%d\r\n%b\r\n" % (len(text), text))


def _encoded(value: Encoded, resp3: bool, add: Add) -> None:
    add(value.data)


def _array(value: Any, resp3: bool, add: Add) -> None:
    add(b"*%d\r\n" % len(value))
    _each(value, resp3, add)


def _push(value: Push, resp3: bool, add: Add) -> None:
    add(b"%b%d\r\n" % (b">" if resp3 else b"*", len(value.items)))
    _each(value.items, resp3, add)


def _many(value: Many, resp3: bool, add: Add) -> None:
    _each(value.items, resp3, add)


def _set(value: Any, resp3: bool, add: Add) -> None:
    add(b"%b%d\r\n" % (b"~" if resp3 else b"*", len(value)))
    _each(value, resp3, add)


def _map(value: dict[bytes, Any], resp3: bool, add: Add) -> None:
    add(b"%%%d\r\n" % len(value) if resp3 else b"*%d\r\n" % (2 * len(value)))
    for key, each in value.items():
        _each((key, each), resp3, add)


def _scored(value: Scored, resp3: bool, add: Add) -> None:
    add(scored_head(value, resp3))
    _each(scored_items(value.found, value.with_scores, resp3), resp3, add)


def scored_head(value: Scored, resp3: bool) -> bytes:
    return b"*%d\r\n" % (len(value.found) * (2 if value.with_scores and not resp3 else 1))


def scored_items(found: list[tuple[float, bytes]], with_scores: bool, resp3: bool) -> list[Any]:
    if not with_scores:
        return [member for _, member in found]
    if resp3:
        return [[member, score] for score, member in found]
    return [each for score, member in found for each in (member, score)]


_WRITE: Final[dict[type, Callable[[Any, bool, Add], None]]] = {
    bytes: _bulk,
    int: _int,
    bool: _bool,
    float: _float,
    type(None): _none,
    Null: _null,
    Simple: _simple,
    Error: _error,
    Verbatim: _verbatim,
    Encoded: _encoded,
    list: _array,
    tuple: _array,
    Push: _push,
    Many: _many,
    Scored: _scored,
    set: _set,
    frozenset: _set,
    dict: _map,
    type({}.keys()): _set,  # the members of a set are the keys of a dict, in the order they came
}
