"""Sets. Their members come back in the order they were added, which is as good as any."""

from itertools import islice
from typing import Final

from crossdock.model.commands.keyspace import ChangeMembers, DropKeys, Kind
from crossdock.protocols.redis.commands.command import GROWS, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import members
from crossdock.protocols.redis.resp.values import SYNTAX, Result, positive


def _drop(context: Context, key: bytes, gone: list[bytes]) -> int:
    if len(gone) == len(members(context, key)) > 0:  # the whole key goes, however large it is
        context.dispatcher.do(DropKeys([key]))
    elif gone:
        context.dispatcher.do(ChangeMembers(key, Kind.SET, drop=gone))
    return len(gone)


def sadd(context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    new = [member for member in dict.fromkeys(args[1:]) if member not in there]
    if new:
        context.dispatcher.do(ChangeMembers(args[0], Kind.SET, [(member, None) for member in new]))
    return len(new)


def srem(context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    return _drop(context, args[0], [member for member in dict.fromkeys(args[1:]) if member in there])


def smembers(context: Context, args: list[bytes]) -> Result:
    return members(context, args[0]).keys()


def sismember(context: Context, args: list[bytes]) -> Result:
    return int(args[1] in members(context, args[0]))


def scard(context: Context, args: list[bytes]) -> Result:
    return len(members(context, args[0]))


def spop(context: Context, args: list[bytes]) -> Result:
    if len(args) > 2:
        raise SYNTAX
    count = positive(args[1]) if len(args) == 2 else 1
    there = members(context, args[0])
    taken = list(islice(there, min(count, len(there))))
    _drop(context, args[0], taken)
    if len(args) == 2:
        return dict.fromkeys(taken).keys()
    return taken[0] if taken else None


COMMANDS: Final = (
    Command(b"sadd", -3, sadd, WRITE | GROWS, 1, 1),
    Command(b"srem", -3, srem, WRITE, 1, 1),
    Command(b"smembers", 2, smembers, 0, 1, 1),
    Command(b"sismember", 3, sismember, 0, 1, 1),
    Command(b"scard", 2, scard, 0, 1, 1),
    Command(b"spop", -2, spop, WRITE, 1, 1),
)
