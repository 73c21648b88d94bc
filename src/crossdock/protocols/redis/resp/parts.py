"""Replies of many elements: encoded a part at a time, while others are served, and no faster than the peer reads.

To encode half a million elements takes a few tenths of a second. The elements are those of the moment when they were
asked for: what changes meanwhile does not show.
"""

from collections.abc import Callable, Generator
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from crossdock.protocols.base import ReplyMemory
from crossdock.protocols.redis.resp.encode import elements, scored_head, scored_items
from crossdock.protocols.redis.resp.values import Scored, Value

#: A reply of more elements, or of more bytes, goes in parts.
MANY: Final = 1_000
LARGE: Final = 256 * 1024

#: A part ends at this many bytes, or after this many blocks of elements: about a millisecond of work.
_PART_BYTES: Final = 256 * 1024
_BLOCKS: Final = 20
_BLOCK: Final = 50

#: Elements measured in one go.
_MEASURED: Final = 20_000

#: What an element takes beside its bytes: its place in a list, and the head of an object.
_ELEMENT_BYTES: Final = 41

_KEYS: Final[type] = type({}.keys())
_SPREAD: Final = frozenset({list, tuple, dict, set, frozenset, Scored, _KEYS})

_Some = Callable[[int, int], Any]


def is_long(value: Any) -> bool:
    if type(value) is list and len(value) <= MANY:
        return sum([len(each) for each in value if type(each) is bytes]) > LARGE
    return type(value) in _SPREAD and len(value) > MANY


def bulk_in_parts(value: bytes) -> Generator[bytes | ReplyMemory, None, None]:
    """One long string. Its bytes are copied when the peer reads them."""
    yield ReplyMemory(len(value))
    yield b"$%d\r\n" % len(value)
    yield from _cut(value)
    yield b"\r\n"


def _cut(value: bytes) -> Generator[bytes, None, None]:
    for first in range(0, len(value), _PART_BYTES):
        yield value[first : first + _PART_BYTES]


def in_parts(value: Any, resp3: bool, kept: int = 0) -> Generator[bytes | ReplyMemory | None, None, None]:
    """The bytes of the reply, and what is kept of it meanwhile. `kept` was told before."""
    head, count, some, columns = _captured(value, resp3)
    yield None
    whole = 0
    for column in columns:
        for first in range(0, count, _MEASURED):
            size = _size(column[first : first + _MEASURED])
            whole += size
            told, kept = min(size, kept), max(0, kept - size)
            yield ReplyMemory(size - told)
    each = max(1, min(_BLOCK, _PART_BYTES * count // whole))
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
    """The head of the reply, how many items there are, what gives the elements of some, and lists of the items."""
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
    """Bytes that they take, about: they may be gone from the store long before the peer has read them."""
    if type(items[0]) is tuple:
        items = list(map(itemgetter(1), items))
    try:
        return sum(map(len, items)) + _ELEMENT_BYTES * len(items)
    except TypeError:  # numbers and nulls among them
        return sum(len(each) for each in items if isinstance(each, bytes)) + _ELEMENT_BYTES * len(items)


def kept_by(keys: list[Value]) -> ReplyMemory:
    """What so many more names take in the answer that is being made."""
    return ReplyMemory(_size(keys)) if keys else ReplyMemory(0)
