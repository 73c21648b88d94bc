"""Strings and counters."""

from typing import Final

from crossdock.model.commands.keyspace import DropKeys, Kind, SetKey
from crossdock.protocols.redis.commands.command import DENY_OOM, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.generic import from_now, invalid_expiry
from crossdock.protocols.redis.keys.values import refuse_large, string
from crossdock.protocols.redis.resp.values import INT64, OK, SYNTAX, Error, Result, parse_int
from crossdock.protocols.redis.views import find

#: The expiry options of SET: their unit in milliseconds, and whether they name a point in time.
_EXPIRY: Final = {b"EX": (1_000, False), b"PX": (1, False), b"EXAT": (1_000, True), b"PXAT": (1, True)}

#: Options of SET that exclude each other. One of them may be repeated.
_TTL_OPTIONS: Final = frozenset({*_EXPIRY, b"KEEPTTL"})


def get(context: Context, args: list[bytes]) -> Result:
    return string(context, args[0])


def mget(context: Context, args: list[bytes]) -> Result:
    """A key of another type counts as missing."""
    found: list[bytes | None] = []
    for key in args:
        entry = find(context, key)
        found.append(entry.data if entry is not None and entry.kind is Kind.STRING else None)
    refuse_large(found)
    return found


def set_(context: Context, args: list[bytes]) -> Result:
    key, value = args[:2]
    words: set[bytes] = set()
    end: tuple[bytes, bytes] | None = None
    options = iter(args[2:])
    for option in map(bytes.upper, options):
        if option in _EXPIRY:
            text = next(options, None)
            if text is None:
                raise SYNTAX
            words.add(option)
            end = option, text
        elif option in (b"NX", b"XX", b"GET", b"KEEPTTL"):
            words.add(option)
        else:
            raise SYNTAX
    if {b"NX", b"XX"} <= words or len(words & _TTL_OPTIONS) > 1:
        raise SYNTAX
    until = None if b"KEEPTTL" in words else 0.0 if end is None else _expiry(context, b"set", *end)
    before = string(context, key) if b"GET" in words else None
    there = find(context, key) is not None
    if (b"NX" in words and there) or (b"XX" in words and not there):
        return before
    context.dispatcher.do(SetKey(key, value, until))
    return before if b"GET" in words else OK


def _expiry(context: Context, name: bytes, option: bytes, text: bytes) -> float:
    unit_ms, is_time = _EXPIRY[option]
    ms = parse_int(text) * unit_ms if is_time else from_now(context, text, unit_ms, name)
    if not 0 < ms < INT64:
        raise invalid_expiry(name)
    now = context.dispatcher.now
    return max(now.steady + ms / 1_000 - (now.wall if is_time else 0.0), 1e-9)


def setnx(context: Context, args: list[bytes]) -> Result:
    if find(context, args[0]) is not None:
        return 0
    context.dispatcher.do(SetKey(args[0], args[1]))
    return 1


def setex(context: Context, args: list[bytes]) -> Result:
    context.dispatcher.do(SetKey(args[0], args[2], _expiry(context, b"setex", b"EX", args[1])))
    return OK


def getdel(context: Context, args: list[bytes]) -> Result:
    value = string(context, args[0])
    if value is not None:
        context.dispatcher.do(DropKeys(args))
    return value


def _add(context: Context, key: bytes, amount: int) -> Result:
    before = string(context, key)
    value = (0 if before is None else parse_int(before)) + amount
    if not -INT64 <= value < INT64:
        raise Error("ERR increment or decrement would overflow")
    context.dispatcher.do(SetKey(key, b"%d" % value, None))
    return value


def incr(context: Context, args: list[bytes]) -> Result:
    return _add(context, args[0], 1)


def decr(context: Context, args: list[bytes]) -> Result:
    return _add(context, args[0], -1)


def incrby(context: Context, args: list[bytes]) -> Result:
    return _add(context, args[0], parse_int(args[1]))


def decrby(context: Context, args: list[bytes]) -> Result:
    amount = parse_int(args[1])
    if amount == -INT64:
        raise Error("ERR decrement would overflow")
    return _add(context, args[0], -amount)


COMMANDS: Final = (
    Command(b"get", 2, get, 0, 1, 1),
    Command(b"mget", -2, mget, 0, 1, -1),
    Command(b"set", -3, set_, WRITE | DENY_OOM, 1, 1),
    Command(b"setnx", 3, setnx, WRITE | DENY_OOM, 1, 1),
    Command(b"setex", 4, setex, WRITE | DENY_OOM, 1, 1),
    Command(b"getdel", 2, getdel, WRITE, 1, 1),
    Command(b"incr", 2, incr, WRITE | DENY_OOM, 1, 1),
    Command(b"decr", 2, decr, WRITE | DENY_OOM, 1, 1),
    Command(b"incrby", 3, incrby, WRITE | DENY_OOM, 1, 1),
    Command(b"decrby", 3, decrby, WRITE | DENY_OOM, 1, 1),
)
