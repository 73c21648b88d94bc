"""Pops that wait. Who waited longest on a key is served first, over all doors' waiters (MODEL 8)."""

import math
from collections.abc import Callable
from typing import Final

from crossdock.engine.keyspace.store import Entry
from crossdock.model.commands.keyspace import Kind
from crossdock.protocols.redis.commands.command import BLOCKS, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.lists import move, sides, take
from crossdock.protocols.redis.resp.numbers import INT64, wide
from crossdock.protocols.redis.resp.values import NULL_ARRAY, WRONG_TYPE, Block, Error, Result, Value
from crossdock.protocols.redis.views import find

#: A longer wait is for ever.
_LONGEST_S: Final = 86_400.0 * 365


def deadline(context: Context, text: bytes) -> float:
    """Steady; 0 waits for ever."""
    seconds = wide(text, Error("ERR timeout is not a float or out of range"))
    if not -1 < seconds * 1_000 < INT64:  # so says Redis of one that its 64 bits do not hold
        raise Error("ERR timeout is negative")
    if (seconds + context.dispatcher.now.wall) * 1_000 >= INT64:
        raise Error("ERR timeout is out of range")
    return context.dispatcher.now.steady + seconds if 0 < seconds < _LONGEST_S else math.inf


def _pop(context: Context, args: list[bytes], *, left: bool) -> Result:
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


def _try(attempt: Callable[[], Result], keys: tuple[bytes, ...], until: float, here: Value) -> Result:
    result = attempt()
    if result is not NULL_ARRAY:
        return result
    return Block(keys, until, lambda: _try(attempt, keys, until, here), NULL_ARRAY, here)


def _is_list(entry: Entry | None) -> bool:
    """What has become of another kind while one waits for it is waited for on."""
    return entry is not None and entry.kind is Kind.LIST


def blpop(context: Context, args: list[bytes]) -> Result:
    return _pop(context, args, left=True)


def brpop(context: Context, args: list[bytes]) -> Result:
    return _pop(context, args, left=False)


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


COMMANDS: Final = (
    Command(b"blpop", -3, blpop, WRITE | BLOCKS, 1, -2),
    Command(b"brpop", -3, brpop, WRITE | BLOCKS, 1, -2),
    Command(b"brpoplpush", 4, brpoplpush, WRITE | BLOCKS, 1, 2),
    Command(b"blmove", 6, blmove, WRITE | BLOCKS, 1, 2),
)
