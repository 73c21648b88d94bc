"""Sorted sets: members by score, equal ones by their bytes. Ranges are in sorted_ranges.py."""

import math
from typing import Final

from crossdock.model.keys import ChangeMembers, Kind
from crossdock.wire.redis.command import GROWS, WRITE, Command
from crossdock.wire.redis.context import Context
from crossdock.wire.redis.errors import SYNTAX
from crossdock.wire.redis.keys import sorted_ranges as ranges
from crossdock.wire.redis.keys.values import scored
from crossdock.wire.redis.numbers import real
from crossdock.wire.redis.values import Error, Result

_OPTIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"})
_NAN: Final = Error("ERR resulting score is not a number (NaN)")


def _put(context: Context, key: bytes, scores: dict[bytes, float]) -> None:
    if scores:
        context.desk.do(ChangeMembers(key, Kind.SORTED, list(scores.items())))


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
    if b"INCR" in options:
        member, amount = given[0]
        score = _sum(before.get(member, 0.0), amount)
        wanted = _wanted(options, before.get(member), score)
        _put(context, args[0], {member: score} if wanted else {})
        return score if wanted else None
    scores: dict[bytes, float] = {}
    for member, score in given:
        if _wanted(options, scores.get(member, before.get(member)), score):
            scores[member] = score
    changed = sum(before[member] != score for member, score in scores.items() if member in before)
    new = sum(member not in before for member in scores)
    _put(context, args[0], scores)
    return new + changed if b"CH" in options else new


def _wanted(options: set[bytes], before: float | None, score: float) -> bool:
    if before is None:
        return b"XX" not in options
    if b"NX" in options or (b"GT" in options and score <= before):
        return False
    return not (b"LT" in options and score >= before)


def _sum(before: float, amount: float) -> float:
    score = before + amount
    if math.isnan(score):
        raise _NAN
    return score


def zincrby(context: Context, args: list[bytes]) -> Result:
    score = _sum(scored(context, args[0]).scores.get(args[2], 0.0), real(args[1]))
    _put(context, args[0], {args[2]: score})
    return score


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
