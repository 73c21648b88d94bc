"""Sets. Members are returned in the order in which they were added; Redis promises no order."""

from itertools import islice
from typing import Final

from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.protocols.redis.commands.command import DENY_OOM, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import members, remove_members
from crossdock.protocols.redis.resp.values import SYNTAX, Result, parse_count


def sadd(context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    new = [member for member in dict.fromkeys(args[1:]) if member not in there]
    if new:
        context.dispatcher.do(ChangeMembers(args[0], Kind.SET, [(member, None) for member in new]))
    return len(new)


def srem(context: Context, args: list[bytes]) -> Result:
    there = members(context, args[0])
    removed = [member for member in dict.fromkeys(args[1:]) if member in there]
    return remove_members(context, args[0], Kind.SET, removed, len(there))


def smembers(context: Context, args: list[bytes]) -> Result:
    return members(context, args[0]).keys()


def sismember(context: Context, args: list[bytes]) -> Result:
    return int(args[1] in members(context, args[0]))


def scard(context: Context, args: list[bytes]) -> Result:
    return len(members(context, args[0]))


def spop(context: Context, args: list[bytes]) -> Result:
    if len(args) > 2:
        raise SYNTAX
    count = parse_count(args[1]) if len(args) == 2 else 1
    there = members(context, args[0])
    taken = list(islice(there, min(count, len(there))))
    remove_members(context, args[0], Kind.SET, taken, len(there))
    if len(args) == 2:
        return dict.fromkeys(taken).keys()
    return taken[0] if taken else None


COMMANDS: Final = (
    Command(b"sadd", -3, sadd, WRITE | DENY_OOM, 1, 1),
    Command(b"srem", -3, srem, WRITE, 1, 1),
    Command(b"smembers", 2, smembers, 0, 1, 1),
    Command(b"sismember", 3, sismember, 0, 1, 1),
    Command(b"scard", 2, scard, 0, 1, 1),
    Command(b"spop", -2, spop, WRITE, 1, 1),
)
