"""Lists, and blocking pops."""

import math
from collections.abc import Callable
from itertools import compress
from typing import Final

from crossdock.engine.keyspace.store import Entry, part
from crossdock.model.commands.keyspace import ChangeList, Kind
from crossdock.protocols.redis.commands.command import BLOCKS, DENY_OOM, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import elements
from crossdock.protocols.redis.resp.values import (
    INT64,
    NULL_ARRAY,
    OK,
    SYNTAX,
    WRONG_TYPE,
    Block,
    Error,
    Result,
    Value,
    arity,
    parse_count,
    parse_int,
    parse_long_double,
    span,
)
from crossdock.protocols.redis.views import find

_SIDES: Final = {b"LEFT": True, b"RIGHT": False}


def _push(context: Context, key: bytes, values: list[bytes], *, left: bool) -> int:
    length = len(elements(context, key))
    change = ChangeList(key, 0, 0, values[::-1]) if left else ChangeList(key, length, 0, values)
    return context.dispatcher.do(change)


def lpush(context: Context, args: list[bytes]) -> Result:
    return _push(context, args[0], args[1:], left=True)


def rpush(context: Context, args: list[bytes]) -> Result:
    return _push(context, args[0], args[1:], left=False)


def lpushx(context: Context, args: list[bytes]) -> Result:
    return _push(context, args[0], args[1:], left=True) if elements(context, args[0]) else 0


def rpushx(context: Context, args: list[bytes]) -> Result:
    return _push(context, args[0], args[1:], left=False) if elements(context, args[0]) else 0


def take(context: Context, key: bytes, count: int, *, left: bool) -> list[bytes]:
    """Remove up to `count` elements from one end, the outermost first."""
    data = elements(context, key)
    count = min(count, len(data))
    start = 0 if left else len(data) - count
    taken = part(data, start, start + count)
    if taken:
        context.dispatcher.do(ChangeList(key, start, count))
    return taken if left else taken[::-1]


def _pop(context: Context, args: list[bytes], name: bytes, *, left: bool) -> Result:
    if len(args) > 2:
        raise arity(name)
    if len(args) == 1:
        taken = take(context, args[0], 1, left=left)
        return taken[0] if taken else None
    count = parse_count(args[1])
    if not elements(context, args[0]):
        return NULL_ARRAY
    return take(context, args[0], count, left=left)


def lpop(context: Context, args: list[bytes]) -> Result:
    return _pop(context, args, b"lpop", left=True)


def rpop(context: Context, args: list[bytes]) -> Result:
    return _pop(context, args, b"rpop", left=False)


def llen(context: Context, args: list[bytes]) -> Result:
    return len(elements(context, args[0]))


def lrange(context: Context, args: list[bytes]) -> Result:
    first, last = parse_int(args[1]), parse_int(args[2])
    data = elements(context, args[0])
    return part(data, *span(first, last, len(data)))


def lindex(context: Context, args: list[bytes]) -> Result:
    """As in LSET, Redis checks the key before the index."""
    data = elements(context, args[0])
    if not data:
        return None
    index = parse_int(args[1])
    return data[index] if -len(data) <= index < len(data) else None


def lset(context: Context, args: list[bytes]) -> Result:
    data = elements(context, args[0])
    if not data:
        raise Error("ERR no such key")
    index = parse_int(args[1])
    if not -len(data) <= index < len(data):
        raise Error("ERR index out of range")
    context.dispatcher.do(ChangeList(args[0], index % len(data), 1, [args[2]]))
    return OK


def lrem(context: Context, args: list[bytes]) -> Result:
    """Remove the first `count` equal elements; the last ones if it is negative; all if it is 0."""
    count, value = parse_int(args[1]), args[2]
    data = elements(context, args[0])
    found = list(compress(range(len(data)), map(value.__eq__, data)))
    if count:
        found = found[:count] if count > 0 else found[count:]
    if found:
        context.dispatcher.do(ChangeList(args[0], 0, drop=found))
    return len(found)


def ltrim(context: Context, args: list[bytes]) -> Result:
    first, last = parse_int(args[1]), parse_int(args[2])
    length = len(elements(context, args[0]))
    start, stop = span(first, last, length)
    with context.dispatcher.together():
        if stop < length:
            context.dispatcher.do(ChangeList(args[0], stop, length - stop))
        if start:
            context.dispatcher.do(ChangeList(args[0], 0, start))
    return OK


def move(context: Context, source: bytes, target: bytes, *, from_left: bool, to_left: bool) -> bytes | None:
    """Move one element to another list, or within a list. It is added before it is removed, so a list with one element
    does not vanish in between and keeps its expiry."""
    data = elements(context, source)
    if not data:
        return None
    value = data[0 if from_left else -1]
    with context.dispatcher.together():
        _push(context, target, [value], left=to_left)
        moved = source == target
        at = int(moved and to_left) if from_left else len(data) - 1 - int(moved and not to_left)
        context.dispatcher.do(ChangeList(source, at, 1))
    return value


def rpoplpush(context: Context, args: list[bytes]) -> Result:
    return move(context, args[0], args[1], from_left=False, to_left=True)


def sides(words: list[bytes]) -> tuple[bool, bool]:
    """Parse two LEFT or RIGHT arguments; True is LEFT."""
    found = [_SIDES.get(word.upper()) for word in words]
    if found[0] is None or found[1] is None:
        raise SYNTAX
    return found[0], found[1]


def lmove(context: Context, args: list[bytes]) -> Result:
    from_left, to_left = sides(args[2:])
    return move(context, args[0], args[1], from_left=from_left, to_left=to_left)


COMMANDS: Final = (
    Command(b"lpush", -3, lpush, WRITE | DENY_OOM, 1, 1),
    Command(b"rpush", -3, rpush, WRITE | DENY_OOM, 1, 1),
    Command(b"lpushx", -3, lpushx, WRITE | DENY_OOM, 1, 1),
    Command(b"rpushx", -3, rpushx, WRITE | DENY_OOM, 1, 1),
    Command(b"lpop", -2, lpop, WRITE, 1, 1),
    Command(b"rpop", -2, rpop, WRITE, 1, 1),
    Command(b"llen", 2, llen, 0, 1, 1),
    Command(b"lrange", 4, lrange, 0, 1, 1),
    Command(b"lindex", 3, lindex, 0, 1, 1),
    Command(b"lset", 4, lset, WRITE | DENY_OOM, 1, 1),
    Command(b"lrem", 4, lrem, WRITE, 1, 1),
    Command(b"ltrim", 4, ltrim, WRITE, 1, 1),
    Command(b"rpoplpush", 3, rpoplpush, WRITE, 1, 2),
    Command(b"lmove", 5, lmove, WRITE, 1, 2),
)


# Blocking pops. The client that has waited longest for a key is served first (model.md section 8).


#: A longer timeout never ends.
_LONGEST_S: Final = 86_400.0 * 365


def deadline(context: Context, text: bytes) -> float:
    """The steady time at which the wait ends; a timeout of 0 never ends."""
    seconds = parse_long_double(text, Error("ERR timeout is not a float or out of range"))
    if not -1 < seconds * 1_000 < INT64:  # Redis has the same text for a timeout that overflows
        raise Error("ERR timeout is negative")
    if (seconds + context.dispatcher.now.wall) * 1_000 >= INT64:
        raise Error("ERR timeout is out of range")
    return context.dispatcher.now.steady + seconds if 0 < seconds < _LONGEST_S else math.inf


def _pop_first(context: Context, args: list[bytes], *, left: bool) -> Result:
    keys, until = tuple(dict.fromkeys(args[:-1])), deadline(context, args[-1])
    for key in keys:
        entry = find(context, key)
        if entry is not None:
            if entry.kind is not Kind.LIST:
                raise WRONG_TYPE
            break
    return _try(lambda: _first(context, keys, left=left), keys, until, NULL_ARRAY)


def _first(context: Context, keys: tuple[bytes, ...], *, left: bool) -> Result:
    for key in keys:
        if _is_list(find(context, key)):
            return [key, take(context, key, 1, left=left)[0]]
    return NULL_ARRAY


def _try(attempt: Callable[[], Result], keys: tuple[bytes, ...], until: float, in_multi: Value) -> Result:
    result = attempt()
    if result is not NULL_ARRAY:
        return result
    return Block(keys, until, lambda: _try(attempt, keys, until, in_multi), NULL_ARRAY, in_multi)


def _is_list(entry: Entry | None) -> bool:
    """A waiting client keeps waiting if the key becomes another type."""
    return entry is not None and entry.kind is Kind.LIST


def blpop(context: Context, args: list[bytes]) -> Result:
    return _pop_first(context, args, left=True)


def brpop(context: Context, args: list[bytes]) -> Result:
    return _pop_first(context, args, left=False)


def _move(context: Context, args: list[bytes], *, from_left: bool, to_left: bool) -> Result:
    source, target, until = args[0], args[1], deadline(context, args[-1])
    entry = find(context, source)
    if entry is not None and entry.kind is not Kind.LIST:
        raise WRONG_TYPE

    def attempt() -> Result:
        if not _is_list(find(context, source)):
            return NULL_ARRAY
        return move(context, source, target, from_left=from_left, to_left=to_left)

    return _try(attempt, (source,), until, None)


def brpoplpush(context: Context, args: list[bytes]) -> Result:
    return _move(context, args, from_left=False, to_left=True)


def blmove(context: Context, args: list[bytes]) -> Result:
    from_left, to_left = sides(args[2:4])
    return _move(context, args, from_left=from_left, to_left=to_left)


BLOCKING_COMMANDS: Final = (
    Command(b"blpop", -3, blpop, WRITE | BLOCKS, 1, -2),
    Command(b"brpop", -3, brpop, WRITE | BLOCKS, 1, -2),
    Command(b"brpoplpush", 4, brpoplpush, WRITE | BLOCKS, 1, 2),
    Command(b"blmove", 6, blmove, WRITE | BLOCKS, 1, 2),
)
