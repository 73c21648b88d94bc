"""Encodes values as RESP2 or RESP3."""

from collections.abc import Callable, Generator
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from crossdock.protocols.base import ErrorReply, ReplyMemory
from crossdock.protocols.redis.resp.values import Encoded, Error, Null, Push, Replies, Scored, Simple, Value, Verbatim

_NULL: Final = (b"$-1\r\n", b"_\r\n")
_NULL_ARRAY: Final = (b"*-1\r\n", b"_\r\n")
_FLAT: Final = bytes.maketrans(b"\r\n", b"  ")

Add = Callable[[bytes], None]


def encode(value: Value, resp3: bool) -> bytes:
    """The bytes of a value. The most frequent types are handled first, the others by a table."""
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
    return ErrorReply(parts[0]) if kind is Error else b"".join(parts)


def elements(values: Any, resp3: bool) -> bytes:
    """The bytes of some elements of an array, set or map, without its head."""
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


def _many(value: Replies, resp3: bool, add: Add) -> None:
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
    Replies: _many,
    Scored: _scored,
    set: _set,
    frozenset: _set,
    dict: _map,
    type({}.keys()): _set,  # a set is stored as the keys of a dict, in insertion order
}


# Long replies are encoded in parts, no faster than the peer reads, while other connections are served.
#
# Encoding half a million elements takes a few tenths of a second. A reply holds the elements at the time of the
# request; later changes do not show.


#: A reply with more elements or more bytes is sent in parts.
MANY: Final = 1_000
LARGE: Final = 256 * 1024

#: A part ends at this many bytes, or after this many blocks of elements: about a millisecond of work.
_PART_BYTES: Final = 256 * 1024
_BLOCKS: Final = 20
_BLOCK: Final = 50

#: Elements whose size is summed in one slice.
_MEASURED: Final = 20_000

#: Memory of an element beside its bytes: the list slot and the object header.
_ELEMENT_BYTES: Final = 41

_KEYS: Final[type] = type({}.keys())
_SPREAD: Final = frozenset({list, tuple, dict, set, frozenset, Scored, _KEYS})

_Some = Callable[[int, int], Any]


def is_long(value: Any) -> bool:
    if type(value) is list and len(value) <= MANY:
        return sum([len(each) for each in value if type(each) is bytes]) > LARGE
    return type(value) in _SPREAD and len(value) > MANY


def bulk_in_parts(value: bytes) -> Generator[bytes | ReplyMemory, None, None]:
    """One long string. Parts are copied only when the peer has read those before."""
    yield ReplyMemory(len(value))
    yield b"$%d\r\n" % len(value)
    yield from _cut(value)
    yield b"\r\n"


def _cut(value: bytes) -> Generator[bytes, None, None]:
    for first in range(0, len(value), _PART_BYTES):
        yield value[first : first + _PART_BYTES]


def in_parts(value: Any, resp3: bool, reported: int = 0) -> Generator[bytes | ReplyMemory | None, None, None]:
    """The bytes of the reply, after reports of the memory that it holds. `reported` bytes are counted already."""
    head, count, some, columns = _captured(value, resp3)
    yield None
    total = 0
    for column in columns:
        for first in range(0, count, _MEASURED):
            size = _size(column[first : first + _MEASURED])
            total += size
            counted, reported = min(size, reported), max(0, reported - size)
            yield ReplyMemory(size - counted)
    each = max(1, min(_BLOCK, _PART_BYTES * count // total))
    parts, size, blocks = [head], 0, 0
    for first in range(0, count, each):
        chosen = some(first, first + each)
        if each == 1 and len(columns) == 1 and type(chosen[0]) is bytes and len(chosen[0]) > LARGE:
            yield b"%b$%d\r\n" % (b"".join(parts), len(chosen[0]))
            yield from _cut(chosen[0])
            parts, size, blocks = [b"\r\n"], 0, 0
            continue
        block = elements(chosen, resp3)
        parts.append(block)
        size += len(block)
        blocks += 1
        if size >= _PART_BYTES or blocks >= _BLOCKS:
            yield b"".join(parts)
            parts, size, blocks = [], 0, 0
    if parts:
        yield b"".join(parts)


def _captured(value: Any, resp3: bool) -> tuple[bytes, int, _Some, list[list[Any]]]:
    """The head of the reply, the number of items, a function that returns the elements of a range of items, and the
    lists of items."""
    count = len(value)
    if isinstance(value, dict):
        keys, values = list(value), list(value.values())
        head = b"%%%d\r\n" % count if resp3 else b"*%d\r\n" % (2 * count)
        return head, count, lambda a, b: chain.from_iterable(zip(keys[a:b], values[a:b], strict=True)), [keys, values]
    if isinstance(value, Scored):
        found, scores = value.found, value.with_scores
        return scored_head(value, resp3), count, lambda a, b: scored_items(found[a:b], scores, resp3), [found]
    items = value if type(value) is list else list(value)
    is_set = isinstance(value, set | frozenset | _KEYS)
    head = b"%b%d\r\n" % (b"~" if is_set and resp3 else b"*", count)
    return head, count, lambda a, b: items[a:b], [items]


def _size(items: list[Any]) -> int:
    """Approximate memory of the items. The reply may be the last reference to them."""
    if type(items[0]) is tuple:
        items = list(map(itemgetter(1), items))
    try:
        return sum(map(len, items)) + _ELEMENT_BYTES * len(items)
    except TypeError:  # there are numbers or nulls
        return sum(len(each) for each in items if isinstance(each, bytes)) + _ELEMENT_BYTES * len(items)


def memory_of(keys: list[Value]) -> ReplyMemory:
    """The memory of these keys in a reply that is being built."""
    return ReplyMemory(_size(keys)) if keys else ReplyMemory(0)
