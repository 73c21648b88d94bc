"""Commands on keys of any kind: delete, ends, names."""

from collections.abc import Iterator
from typing import Final

from crossdock.engine.queries.keyspace import all_keys, live_entry
from crossdock.model.commands.keyspace import DropKeys, KeepKey
from crossdock.protocols.glob import Glob
from crossdock.protocols.redis.commands.command import WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.scan import TYPES, scan
from crossdock.protocols.redis.keys.values import pattern
from crossdock.protocols.redis.resp.numbers import INT64, whole
from crossdock.protocols.redis.resp.parts import kept_by
from crossdock.protocols.redis.resp.values import Error, Result, Simple, Value, Work, shown
from crossdock.protocols.redis.views import SLICE, find

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
    for view in context.door.views.all:
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
