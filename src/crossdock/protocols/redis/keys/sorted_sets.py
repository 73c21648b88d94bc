"""Sorted sets: members in the order of their scores, equal scores in byte order; ranges by rank and by score."""

import math
from typing import Final, NamedTuple

from crossdock.engine.keyspace.store import Sorted
from crossdock.model.commands.keyspace import ChangeMembers, Kind
from crossdock.protocols.redis.commands.command import DENY_OOM, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import remove_members, scored
from crossdock.protocols.redis.resp.values import (
    SYNTAX,
    Error,
    Result,
    Scored,
    parse_bound,
    parse_float,
    parse_int,
    span,
)

_NOT_A_BOUND: Final = Error("ERR min or max is not a float")
_LIMIT_ALONE: Final = Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")


class _RangeOptions(NamedTuple):
    """The options after the two bounds."""

    by_score: bool = False
    reverse: bool = False
    with_scores: bool = False
    skip: int = 0
    at_most: int = -1  #: negative: all


def _parse_options(words: list[bytes], options: _RangeOptions, allowed: frozenset[bytes]) -> _RangeOptions:
    """`allowed` are the options beside WITHSCORES and LIMIT; each may appear once."""
    at = 0
    while at < len(words):
        word = words[at].upper()
        if word == b"WITHSCORES":
            options = options._replace(with_scores=True)
        elif word == b"LIMIT" and at + 2 < len(words):
            options = options._replace(skip=parse_int(words[at + 1]), at_most=parse_int(words[at + 2]))
            at += 2
        elif word == b"REV" and word in allowed:
            options, allowed = options._replace(reverse=True), allowed - {word}
        elif word == b"BYSCORE" and word in allowed:
            options, allowed = options._replace(by_score=True), allowed - {word}
        else:
            raise SYNTAX
        at += 1
    if options.at_most != -1 and not options.by_score:
        raise _LIMIT_ALONE
    return options


class _Scores(NamedTuple):
    """A half-open range of scores; None is above all scores. Redis parses the bounds before it looks at the key."""

    low: float | None
    high: float | None

    def of(self, data: Sorted) -> tuple[int, int]:
        start, stop = (
            len(data) if score is None else data.order.bisect_left((score, b"")) for score in (self.low, self.high)
        )
        return (start, stop) if start < stop else (0, 0)


def _scores(low: bytes, high: bytes) -> _Scores:
    return _Scores(_from(low, upper=False), _from(high, upper=True))


def _from(text: bytes, *, upper: bool) -> float | None:
    """The score at which the members within a lower bound begin, or those within an upper bound end."""
    score, exclusive = parse_bound(text, _NOT_A_BOUND)
    if exclusive is upper:
        return score
    return None if score == math.inf else math.nextafter(score, math.inf)


def _range(context: Context, args: list[bytes], options: _RangeOptions) -> Result:
    key, first, last = args[:3]
    if options.by_score:
        scores = _scores(last, first) if options.reverse else _scores(first, last)
        data = scored(context, key)
        start, stop = _limited(*scores.of(data), options)
    else:
        ranks = parse_int(first), parse_int(last)
        data = scored(context, key)
        start, stop = span(*ranks, len(data))
        if options.reverse:
            start, stop = len(data) - stop, len(data) - start
    found = data.order[start:stop]
    if options.reverse:
        found.reverse()
    return Scored(found, with_scores=options.with_scores)


def _limited(start: int, stop: int, options: _RangeOptions) -> tuple[int, int]:
    if options.skip < 0:
        return 0, 0
    count = stop - start if options.at_most < 0 else options.at_most
    if options.reverse:
        stop = max(start, stop - options.skip)
        return max(start, stop - count), stop
    start = min(stop, start + options.skip)
    return start, min(stop, start + count)


def zrange(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _parse_options(args[3:], _RangeOptions(), frozenset({b"REV", b"BYSCORE"})))


def zrevrange(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _parse_options(args[3:], _RangeOptions(reverse=True), frozenset()))


def zrangebyscore(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _parse_options(args[3:], _RangeOptions(by_score=True), frozenset()))


def zcount(context: Context, args: list[bytes]) -> Result:
    scores = _scores(args[1], args[2])
    start, stop = scores.of(scored(context, args[0]))
    return stop - start


def zremrangebyscore(context: Context, args: list[bytes]) -> Result:
    scores = _scores(args[1], args[2])
    data = scored(context, args[0])
    start, stop = scores.of(data)
    removed = [member for _, member in data.order[start:stop]]
    return remove_members(context, args[0], Kind.SORTED, removed, len(data))


RANGE_COMMANDS: Final = (
    Command(b"zrange", -4, zrange, 0, 1, 1),
    Command(b"zrevrange", -4, zrevrange, 0, 1, 1),
    Command(b"zrangebyscore", -4, zrangebyscore, 0, 1, 1),
    Command(b"zcount", 4, zcount, 0, 1, 1),
    Command(b"zremrangebyscore", 4, zremrangebyscore, WRITE, 1, 1),
)


_OPTIONS: Final = frozenset({b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"})
_NAN: Final = Error("ERR resulting score is not a number (NaN)")


def _put(context: Context, key: bytes, scores: dict[bytes, float]) -> None:
    """Negative zero is stored as zero, as Redis does in its small sets."""
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
    amounts = [(member, parse_float(score)) for score, member in zip(pairs[::2], pairs[1::2], strict=True)]
    before = scored(context, args[0]).scores
    scores: dict[bytes, float] = {}
    new = changed = 0
    found: float | None = None
    for member, amount in amounts:
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
    """The new score of a member; None if it does not change."""
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
    removed = [member for member in dict.fromkeys(args[1:]) if member in there]
    return remove_members(context, args[0], Kind.SORTED, removed, len(there))


def zscore(context: Context, args: list[bytes]) -> Result:
    return scored(context, args[0]).scores.get(args[1])


def zcard(context: Context, args: list[bytes]) -> Result:
    return len(scored(context, args[0]))


COMMANDS: Final = (
    Command(b"zadd", -4, zadd, WRITE | DENY_OOM, 1, 1),
    Command(b"zincrby", 4, zincrby, WRITE | DENY_OOM, 1, 1),
    Command(b"zrem", -3, zrem, WRITE, 1, 1),
    Command(b"zscore", 3, zscore, 0, 1, 1),
    Command(b"zcard", 2, zcard, 0, 1, 1),
    *RANGE_COMMANDS,
)
