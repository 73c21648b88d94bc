"""Commands on keys of any type: SCAN, DEL, expiry, KEYS.

A SCAN cursor stays valid while keys come and go: a key that exists from the first call to the last is returned. COUNT
is the number of keys visited, as in Redis, so a call may return none.
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
from crossdock.protocols.redis.resp.encode import elements, memory_of
from crossdock.protocols.redis.resp.values import (
    INT64,
    SYNTAX,
    Encoded,
    Error,
    Result,
    Simple,
    Value,
    Work,
    excerpt,
    parse_int,
)
from crossdock.protocols.redis.views import SLICE, find

#: Keys that one SCAN visits, and keys visited before other connections are served again.
AT_MOST: Final = 5_000
_SLICE: Final = 500

#: Cursors of plain keys are smaller. Each view has a range of this size after them.
_SPACE: Final = 1 << 56

#: A cursor. Its length is limited because parsing a very long number is slow.
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
                count = parse_int(value)
                if count < 1:
                    raise SYNTAX
            case b"TYPE":
                kind = value.lower()
            case _:
                raise SYNTAX
    return _scan(context, cursor, min(count, AT_MOST), glob, kind)


def _cursor(text: bytes) -> int:
    """Parse a cursor like C's strtoul: the empty text is 0, a negative number wraps around."""
    if _CURSOR.fullmatch(text) is None or abs(cursor := int(text or b"0")) >= 2**64:
        raise Error("ERR invalid cursor")
    return cursor % 2**64


def _scan(context: Context, cursor: int, count: int, glob: Glob, kind: bytes | None) -> Work:
    views = context.protocol.views.all
    found, parts = 0, []  # keys are encoded slice by slice: all at once would take longer than a slice
    left = count
    space, position = divmod(cursor, _SPACE)
    while space <= len(views):
        if space == 0:
            position, keys = _plain(context, position, min(left, _SLICE), kind)
        else:
            view = views[space - 1]
            position, keys = yield from view.page(context, position, left)
            if kind is not None:
                keys = [key for key in keys if TYPES[view.kind(key)] == kind]
        matching = [key for key in keys if glob.matches(key)]
        found += len(matching)
        parts.append(elements(matching, context.resp3))
        left -= len(keys)
        if position and (space or left <= 0):
            break
        if position:
            yield
            continue
        space += 1
        if left <= 0:
            break
    keys_found = Encoded(b"*%d\r\n%b" % (found, b"".join(parts)))
    return [b"%d" % (space * _SPACE + position if space <= len(views) else 0), keys_found]


def _plain(context: Context, position: int, count: int, kind: bytes | None) -> tuple[int, list[bytes]]:
    after, page = page_of_entries(context.dispatcher.state, position, count, context.dispatcher.now)
    return after, [key for key, entry in page if kind is None or TYPES[entry.kind] == kind]


# Delete, expiry, and listing all keys.


_OPTIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT"})


def delete(context: Context, args: list[bytes]) -> Result:
    return context.dispatcher.do(DropKeys(args))


def exists(context: Context, args: list[bytes]) -> Result:
    return sum(find(context, key) is not None for key in args)


def type_(context: Context, args: list[bytes]) -> Result:
    entry = find(context, args[0])
    return Simple(b"none" if entry is None else TYPES[entry.kind])


#: Largest remaining time in a reply. The expiry of a throttle may be later than 64 bits of milliseconds.
_FAR_MS: Final = 2.0**62


def _left_ms(context: Context, key: bytes) -> int:
    """The remaining time of a key; -2: no such key; -1: no expiry."""
    entry = find(context, key)
    if entry is None:
        return -2
    return round(min((entry.end - context.dispatcher.now.steady) * 1_000, _FAR_MS)) if entry.end else -1


def ttl(context: Context, args: list[bytes]) -> Result:
    left = _left_ms(context, args[0])
    return left if left < 0 else (left + 500) // 1_000


def pttl(context: Context, args: list[bytes]) -> Result:
    return _left_ms(context, args[0])


def from_now(context: Context, text: bytes, unit_ms: int, name: bytes) -> int:
    """A duration in milliseconds. Now plus the duration must fit into 64 bits."""
    ms = parse_int(text) * unit_ms
    if ms < -INT64 or ms + int(context.dispatcher.now.wall * 1_000) >= INT64:
        raise invalid_expiry(name)
    return ms


def invalid_expiry(name: bytes) -> Error:
    return Error(b"ERR invalid expire time in '%b' command" % name)


def expire(context: Context, args: list[bytes]) -> Result:
    return _expire(context, args, b"expire", 1_000)


def pexpire(context: Context, args: list[bytes]) -> Result:
    return _expire(context, args, b"pexpire", 1)


def _expire(context: Context, args: list[bytes], name: bytes, unit_ms: int) -> Result:
    options = {option.upper() for option in args[2:]}
    if not options <= _OPTIONS:
        wrong = next(option for option in args[2:] if option.upper() not in _OPTIONS)
        raise Error(b"ERR Unsupported option %b" % excerpt(wrong))
    if b"NX" in options and len(options) > 1:
        raise Error("ERR NX and XX, GT or LT options at the same time are not compatible")
    if {b"GT", b"LT"} <= options:
        raise Error("ERR GT and LT options at the same time are not compatible")
    ms = from_now(context, args[1], unit_ms, name)
    key = args[0]
    left = _left_ms(context, key)
    if left == -2 or not _condition_holds(options, left, ms):
        return 0
    return int(context.dispatcher.do(KeepKey(key, max(context.dispatcher.now.steady + ms / 1_000, 1e-9))))


def _condition_holds(options: set[bytes], left: int, ms: int) -> bool:
    """Whether NX, XX, GT and LT allow the new expiry. No expiry counts as the latest."""
    persistent = left == -1
    if (b"NX" in options and not persistent) or (b"XX" in options and persistent):
        return False
    if b"GT" in options:
        return not persistent and ms > left
    return b"LT" not in options or persistent or ms < left


def persist(context: Context, args: list[bytes]) -> Result:
    if _left_ms(context, args[0]) < 0:
        return 0
    return int(context.dispatcher.do(KeepKey(args[0], 0.0)))


def keys(context: Context, args: list[bytes]) -> Result:
    return _keys(context, pattern(args[0]))


def _keys(context: Context, glob: Glob) -> Work:
    found: list[Value] = []
    reported = 0
    for seen, key in enumerate(_all(context), 1):
        if glob.matches(key):
            found.append(key)
        if seen % SLICE == 0:
            yield memory_of(found[reported:])
            reported = len(found)
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
    """Keys of views first, then the plain keys that existed at the start and still exist."""
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
