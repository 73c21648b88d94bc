"""Hashes."""

from typing import Final

from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.protocols.redis.commands.command import DENY_OOM, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import fields, refuse_large
from crossdock.protocols.redis.resp.values import INT64, OK, Error, Result, arity, parse_int


def _put(context: Context, name: bytes, args: list[bytes]) -> int:
    """Set fields, and return how many are new."""
    if not len(args) % 2:
        raise arity(name)
    pairs = dict(zip(args[1::2], args[2::2], strict=True))
    new = pairs.keys() - fields(context, args[0]).keys()
    context.dispatcher.do(ChangeMembers(args[0], Kind.HASH, list(pairs.items())))
    return len(new)


def hset(context: Context, args: list[bytes]) -> Result:
    return _put(context, b"hset", args)


def hmset(context: Context, args: list[bytes]) -> Result:
    _put(context, b"hmset", args)
    return OK


def hsetnx(context: Context, args: list[bytes]) -> Result:
    return 0 if args[1] in fields(context, args[0]) else _put(context, b"hsetnx", args)


def hget(context: Context, args: list[bytes]) -> Result:
    return fields(context, args[0]).get(args[1])


def hmget(context: Context, args: list[bytes]) -> Result:
    there = fields(context, args[0])
    found = [there.get(field) for field in args[1:]]
    refuse_large(found)
    return found


def hgetall(context: Context, args: list[bytes]) -> Result:
    return fields(context, args[0])


def hkeys(context: Context, args: list[bytes]) -> Result:
    return list(fields(context, args[0]))


def hvals(context: Context, args: list[bytes]) -> Result:
    return list(fields(context, args[0]).values())


def hlen(context: Context, args: list[bytes]) -> Result:
    return len(fields(context, args[0]))


def hexists(context: Context, args: list[bytes]) -> Result:
    return int(args[1] in fields(context, args[0]))


def hdel(context: Context, args: list[bytes]) -> Result:
    there = fields(context, args[0])
    removed = [field for field in dict.fromkeys(args[1:]) if field in there]
    if removed:
        context.dispatcher.do(ChangeMembers(args[0], Kind.HASH, drop=removed))
    return len(removed)


def hincrby(context: Context, args: list[bytes]) -> Result:
    amount = parse_int(args[2])
    before = fields(context, args[0]).get(args[1], b"0")
    value = parse_int(before, Error("ERR hash value is not an integer")) + amount
    if not -INT64 <= value < INT64:
        raise Error("ERR increment or decrement would overflow")
    context.dispatcher.do(ChangeMembers(args[0], Kind.HASH, [(args[1], b"%d" % value)]))
    return value


COMMANDS: Final = (
    Command(b"hset", -4, hset, WRITE | DENY_OOM, 1, 1),
    Command(b"hmset", -4, hmset, WRITE | DENY_OOM, 1, 1),
    Command(b"hsetnx", 4, hsetnx, WRITE | DENY_OOM, 1, 1),
    Command(b"hget", 3, hget, 0, 1, 1),
    Command(b"hmget", -3, hmget, 0, 1, 1),
    Command(b"hgetall", 2, hgetall, 0, 1, 1),
    Command(b"hkeys", 2, hkeys, 0, 1, 1),
    Command(b"hvals", 2, hvals, 0, 1, 1),
    Command(b"hlen", 2, hlen, 0, 1, 1),
    Command(b"hexists", 3, hexists, 0, 1, 1),
    Command(b"hdel", -3, hdel, WRITE, 1, 1),
    Command(b"hincrby", 4, hincrby, WRITE | DENY_OOM, 1, 1),
)
