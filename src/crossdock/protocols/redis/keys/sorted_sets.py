"""Sorted sets: members by score, equal ones by their bytes; ranges by rank and by score."""

import math
from typing import Final, NamedTuple

from crossdock.engine.keyspace.store import Sorted
from crossdock.model.commands.keyspace import ChangeMembers, DropKeys, Kind
from crossdock.protocols.redis.commands.command import GROWS, WRITE, Command
from crossdock.protocols.redis.context import Context
from crossdock.protocols.redis.keys.values import scored
from crossdock.protocols.redis.resp.values import SYNTAX, Error, Result, Scored, bound, real, span, whole

_NOT_A_BOUND: Final = Error("ERR min or max is not a float")
_LIMIT_ALONE: Final = Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")


class _RangeOptions(NamedTuple):
    """The words behind the two bounds."""

    by_score: bool = False
    reverse: bool = False
    with_scores: bool = False
    skip: int = 0
    at_most: int = -1  #: negative: all


def _asked(words: list[bytes], asked: _RangeOptions, free: frozenset[bytes]) -> _RangeOptions:
    """`free` are the words beside WITHSCORES and LIMIT that may be said, each once."""
    at = 0
    while at < len(words):
        word = words[at].upper()
        if word == b"WITHSCORES":
            asked = asked._replace(with_scores=True)
        elif word == b"LIMIT" and at + 2 < len(words):
            asked = asked._replace(skip=whole(words[at + 1]), at_most=whole(words[at + 2]))
            at += 2
        elif word == b"REV" and word in free:
            asked, free = asked._replace(reverse=True), free - {word}
        elif word == b"BYSCORE" and word in free:
            asked, free = asked._replace(by_score=True), free - {word}
        else:
            raise SYNTAX
        at += 1
    if asked.at_most != -1 and not asked.by_score:
        raise _LIMIT_ALONE
    return asked


class _Scores(NamedTuple):
    """A range by score, read before the key is looked at, as Redis does: from one score to before another. None is
    beyond all of them."""

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
    """Where the members within that bound begin, or where they end."""
    score, exclusive = bound(text, _NOT_A_BOUND)
    if exclusive is upper:
        return score
    return None if score == math.inf else math.nextafter(score, math.inf)


def _range(context: Context, args: list[bytes], asked: _RangeOptions) -> Result:
    key, first, last = args[:3]
    if asked.by_score:
        scores = _scores(last, first) if asked.reverse else _scores(first, last)
        data = scored(context, key)
        start, stop = _limited(*scores.of(data), asked)
    else:
        ranks = whole(first), whole(last)
        data = scored(context, key)
        start, stop = span(*ranks, len(data))
        if asked.reverse:
            start, stop = len(data) - stop, len(data) - start
    found = data.order[start:stop]
    if asked.reverse:
        found.reverse()
    return Scored(found, with_scores=asked.with_scores)


def _limited(start: int, stop: int, asked: _RangeOptions) -> tuple[int, int]:
    if asked.skip < 0:
        return 0, 0
    count = stop - start if asked.at_most < 0 else asked.at_most
    if asked.reverse:
        stop = max(start, stop - asked.skip)
        return max(start, stop - count), stop
    start = min(stop, start + asked.skip)
    return start, min(stop, start + count)


def zrange(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _asked(args[3:], _RangeOptions(), frozenset({b"REV", b"BYSCORE"})))


def zrevrange(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _asked(args[3:], _RangeOptions(reverse=True), frozenset()))


def zrangebyscore(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _asked(args[3:], _RangeOptions(by_score=True), frozenset()))


def zcount(context: Context, args: list[bytes]) -> Result:
    scores = _scores(args[1], args[2])
    start, stop = scores.of(scored(context, args[0]))
    return stop - start


def drop(context: Context, key: bytes, gone: list[bytes]) -> int:
    if len(gone) == len(scored(context, key)) > 0:  # the whole key goes, however large it is
        context.dispatcher.do(DropKeys([key]))
    elif gone:
        context.dispatcher.do(ChangeMembers(key, Kind.SORTED, drop=gone))
    return len(gone)


def zremrangebyscore(context: Context, args: list[bytes]) -> Result:
    scores = _scores(args[1], args[2])
    data = scored(context, args[0])
    start, stop = scores.of(data)
    return drop(context, args[0], [member for _, member in data.order[start:stop]])


RANGE_COMMANDS: Final = (
    Command(b"zrange", -4, zrange, 0, 1, 1),
    Command(b"zrevrange", -4, zrevrange, 0, 1, 1),
    Command(b"zrangebyscore", -4, zrangebyscore, 0, 1, 1),
    Command(b"zcount", 4, zcount, 0, 1, 1),
    Command(b"zremrangebyscore", 4, zremrangebyscore, WRITE, 1, 1),
)


# Sorted sets: members by score, equal ones by their bytes. Ranges are in sorted_ranges.py.


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
    return drop(context, args[0], [member for member in dict.fromkeys(args[1:]) if member in there])


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
    *RANGE_COMMANDS,
)
