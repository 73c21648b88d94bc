"""Commands on keys of any kind: scan, delete, expiry, names.

A cursor names a place that stays where it is while keys come and go: whatever is there from the first call to the last
is told of. COUNT is how many keys are looked at, as in Redis, not how many are found; a call may find none.
"""

import re
from collections.abc import Iterator
from typing import Final

from crossdock.engine.queries.keyspace import all_keys, live_entry, page_of_entries
from crossdock.model.commands.keyspace import DropKeys, KeepKey, Kind
from crossdock.protocols.glob import Glob
from crossdock.protocols.redis.commands.command import WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import pattern
from crossdock.protocols.redis.resp.encode import elements, kept_by
from crossdock.protocols.redis.resp.values import (
    INT64,
    SYNTAX,
    Encoded,
    Error,
    Result,
    Simple,
    Value,
    Work,
    shown,
    whole,
)
from crossdock.protocols.redis.views import SLICE, find

#: Keys that one call looks at, at most, and in one go.
AT_MOST: Final = 5_000
_SLICE: Final = 500

#: Cursors of plain keys are below it, then follow as many for each view.
_SPACE: Final = 1 << 56

#: Its length is bounded so that it is read in no time.
_CURSOR: Final = re.compile(rb"(?:[+-]?\d{1,40})?")

TYPES: Final = {
    Kind.STRING: b"string",
    Kind.LIST: b"list",
    Kind.SET: b"set",
    Kind.HASH: b"hash",
    Kind.SORTED: b"zset",
}


def scan(context: Context, args: list[bytes]) -> Result:
    cursor = _cursor(args[0])
    glob, count, kind = pattern(b"*"), 10, None
    words = iter(args[1:])
    for option in words:
        value = next(words, None)
        if value is None:
            raise SYNTAX
        match option.upper():
            case b"MATCH":
                glob = pattern(value)
            case b"COUNT":
                count = whole(value)
                if count < 1:
                    raise SYNTAX
            case b"TYPE":
                kind = value.lower()
            case _:
                raise SYNTAX
    return _scan(context, cursor, min(count, AT_MOST), glob, kind)


def _cursor(text: bytes) -> int:
    """What C's strtoul reads: nothing is zero, and a negative one counts from the other end."""
    if _CURSOR.fullmatch(text) is None or abs(cursor := int(text or b"0")) >= 2**64:
        raise Error("ERR invalid cursor")
    return cursor % 2**64


def _scan(context: Context, cursor: int, count: int, glob: Glob, kind: bytes | None) -> Work:
    views = context.protocol.views.all
    found, parts = 0, []  # of each slice what goes on the wire: all of it at once would take longer than a slice
    left = count
    space, place = divmod(cursor, _SPACE)
    while space <= len(views):
        if space == 0:
            place, keys = _plain(context, place, min(left, _SLICE), kind)
        else:
            view = views[space - 1]
            place, keys = yield from view.page(context, place, left)
            if kind is not None:
                keys = [key for key in keys if TYPES[view.kind(key)] == kind]
        matching = [key for key in keys if glob.matches(key)]
        found += len(matching)
        parts.append(elements(matching, context.resp3))
        left -= len(keys)
        if place and (space or left <= 0):
            break
        if place:
            yield
            continue
        space += 1
        if left <= 0:
            break
    shown = Encoded(b"*%d\r\n%b" % (found, b"".join(parts)))
    return [b"%d" % (space * _SPACE + place if space <= len(views) else 0), shown]


def _plain(context: Context, place: int, count: int, kind: bytes | None) -> tuple[int, list[bytes]]:
    then, page = page_of_entries(context.dispatcher.state, place, count, context.dispatcher.now)
    return then, [key for key, entry in page if kind is None or TYPES[entry.kind] == kind]


# Commands on keys of any kind: delete, ends, names.


_OPTIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT"})


def delete(context: Context, args: list[bytes]) -> Result:
    return context.dispatcher.do(DropKeys(args))


def exists(context: Context, args: list[bytes]) -> Result:
    return sum(find(context, key) is not None for key in args)


def type_(context: Context, args: list[bytes]) -> Result:
    entry = find(context, args[0])
    return Simple(b"none" if entry is None else TYPES[entry.kind])


#: No reply is further off: it has 64 bits.
_FAR_MS: Final = 2.0**62


def _left_ms(context: Context, key: bytes) -> int:
    """-2: there is no such key; -1: it has no end."""
    entry = find(context, key)
    if entry is None:
        return -2
    # A throttle's end may be further off than 64 bits of milliseconds tell.
    return round(min((entry.end - context.dispatcher.now.steady) * 1_000, _FAR_MS)) if entry.end else -1


def ttl(context: Context, args: list[bytes]) -> Result:
    left = _left_ms(context, args[0])
    return left if left < 0 else (left + 500) // 1_000


def pttl(context: Context, args: list[bytes]) -> Result:
    return _left_ms(context, args[0])


def from_now(context: Context, text: bytes, unit_ms: int, name: bytes) -> int:
    """In milliseconds; an end must be one that 64 bits of milliseconds since 1970 tell."""
    ms = whole(text) * unit_ms
    if ms < -INT64 or ms + int(context.dispatcher.now.wall * 1_000) >= INT64:
        raise invalid_end(name)
    return ms


def invalid_end(name: bytes) -> Error:
    return Error(b"ERR invalid expire time in '%b' command" % name)


def expire(context: Context, args: list[bytes]) -> Result:
    return _expire(context, args, b"expire", 1_000)


def pexpire(context: Context, args: list[bytes]) -> Result:
    return _expire(context, args, b"pexpire", 1)


def _expire(context: Context, args: list[bytes], name: bytes, unit_ms: int) -> Result:
    options = {option.upper() for option in args[2:]}
    if not options <= _OPTIONS:
        wrong = next(option for option in args[2:] if option.upper() not in _OPTIONS)
        raise Error(b"ERR Unsupported option %b" % shown(wrong))
    if b"NX" in options and len(options) > 1:
        raise Error("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"GT", b"LT"} <= options:
        raise Error("ERR GT and LT options at the same time are not compatible")
    ms = from_now(context, args[1], unit_ms, name)
    key = args[0]
    left = _left_ms(context, key)
    if left == -2 or not _wanted(options, left, ms):
        return 0
    return int(context.dispatcher.do(KeepKey(key, max(context.dispatcher.now.steady + ms / 1_000, 1e-9))))


def _wanted(options: set[bytes], left: int, ms: int) -> bool:
    """No end counts as the latest of all."""
    old = left == -1
    if (b"NX" in options and not old) or (b"XX" in options and old):
        return False
    if b"GT" in options:
        return not old and ms > left
    return b"LT" not in options or old or ms < left


def persist(context: Context, args: list[bytes]) -> Result:
    if _left_ms(context, args[0]) < 0:
        return 0
    return int(context.dispatcher.do(KeepKey(args[0], 0.0)))


def keys(context: Context, args: list[bytes]) -> Result:
    return _keys(context, pattern(args[0]))


def _keys(context: Context, glob: Glob) -> Work:
    found: list[Value] = []
    told = 0
    for seen, key in enumerate(_all(context), 1):
        if glob.matches(key):
            found.append(key)
        if seen % SLICE == 0:
            yield kept_by(found[told:])
            told = len(found)
    return found


def size(context: Context, args: list[bytes]) -> Result:
    return _count(context)


def _count(context: Context) -> Work:
    seen = 0
    for _ in _all(context):
        seen += 1
        if seen % SLICE == 0:
            yield
    return seen


def _all(context: Context) -> Iterator[bytes]:
    """Those shown first, then the plain ones: as they were when it was asked, without those that went meanwhile."""
    for view in context.protocol.views.all:
        yield from view.keys(context)
    state = context.dispatcher.state
    for key in all_keys(state):
        if live_entry(state, key, context.dispatcher.now) is not None:
            yield key


COMMANDS: Final = (
    Command(b"del", -2, delete, WRITE, 1, -1),
    Command(b"unlink", -2, delete, WRITE, 1, -1),
    Command(b"exists", -2, exists, 0, 1, -1),
    Command(b"type", 2, type_, 0, 1, 1),
    Command(b"ttl", 2, ttl, 0, 1, 1),
    Command(b"pttl", 2, pttl, 0, 1, 1),
    Command(b"expire", -3, expire, WRITE, 1, 1),
    Command(b"pexpire", -3, pexpire, WRITE, 1, 1),
    Command(b"persist", 2, persist, WRITE, 1, 1),
    Command(b"keys", 2, keys),
    Command(b"dbsize", 1, size),
    Command(b"scan", -2, scan),
)
