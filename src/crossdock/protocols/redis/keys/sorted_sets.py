"""Sorted sets: members by score, equal ones by their bytes. Ranges are in sorted_ranges.py."""

import math
from typing import Final

from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.protocols.redis.commands.command import GROWS, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys import sorted_ranges as ranges
from crossdock.protocols.redis.keys.values import scored
from crossdock.protocols.redis.resp.numbers import real
from crossdock.protocols.redis.resp.values import SYNTAX, Error, Result

_OPTIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"})
_NAN: Final = Error("ERR resulting score is not a number (NaN)")


def _put(context: Context, key: bytes, scores: dict[bytes, float]) -> None:
    """A zero is kept without its sign, as Redis does in its small sets."""
    if scores:
        context.dispatcher.do(
            ChangeMembers(key, Kind.SORTED, [(member, score + 0.0) for member, score in scores.items()])
        )


def zadd(context: Context, args: list[bytes]) -> Result:
    at = 1
    while at < len(args) and args[at].upper() in _OPTIONS:
        at += 1
    options = {word.upper() for word in args[1:at]}
    pairs = args[at:]
    if not pairs or len(pairs) % 2:
        raise SYNTAX
    if {b"NX", b"XX"} <= options:
        raise Error("ERR XX and NX options at the same time are not compatible")
    if len(options & {b"NX", b"GT", b"LT"}) > 1:
        raise Error("ERR GT, LT, and/or NX options at the same time are not compatible")
    if b"INCR" in options and len(pairs) > 2:
        raise Error("ERR INCR option supports a single increment-element pair")
    given = [(member, real(score)) for score, member in zip(pairs[::2], pairs[1::2], strict=True)]
    before = scored(context, args[0]).scores
    scores: dict[bytes, float] = {}
    new = changed = 0
    found: float | None = None
    for member, amount in given:
        there = scores.get(member, before.get(member))
        found = _score(options, there, amount)
        if found is not None:
            scores[member] = found
            new += there is None
            changed += there is not None and there != found
    _put(context, args[0], scores)
    if b"INCR" in options:
        return found
    return new + changed if b"CH" in options else new


def _score(options: set[bytes], before: float | None, amount: float) -> float | None:
    """What a member has then; None: it is left as it is."""
    if before is None:
        return None if b"XX" in options else amount
    if b"NX" in options:
        return None
    score = before + amount if b"INCR" in options else amount
    if math.isnan(score):
        raise _NAN
    if (b"GT" in options and score <= before) or (b"LT" in options and score >= before):
        return None
    return score


def zincrby(context: Context, args: list[bytes]) -> Result:
    return zadd(context, [args[0], b"INCR", args[1], args[2]])


def zrem(context: Context, args: list[bytes]) -> Result:
    there = scored(context, args[0]).scores
    return ranges.drop(context, args[0], [member for member in dict.fromkeys(args[1:]) if member in there])


def zscore(context: Context, args: list[bytes]) -> Result:
    return scored(context, args[0]).scores.get(args[1])


def zcard(context: Context, args: list[bytes]) -> Result:
    return len(scored(context, args[0]))


COMMANDS: Final = (
    Command(b"zadd", -4, zadd, WRITE | GROWS, 1, 1),
    Command(b"zincrby", 4, zincrby, WRITE | GROWS, 1, 1),
    Command(b"zrem", -3, zrem, WRITE, 1, 1),
    Command(b"zscore", 3, zscore, 0, 1, 1),
    Command(b"zcard", 2, zcard, 0, 1, 1),
    *ranges.COMMANDS,
)
