"""Ranges of sorted sets, by rank and by score."""

import math
from typing import Final, NamedTuple

from crossdock.engine.keys import Sorted
from crossdock.model.keys import ChangeMembers, Kind
from crossdock.wire.redis.command import WRITE, Command
from crossdock.wire.redis.context import Context
from crossdock.wire.redis.errors import SYNTAX
from crossdock.wire.redis.keys.values import scored
from crossdock.wire.redis.numbers import real, span, whole
from crossdock.wire.redis.values import Error, Result, Value

_NOT_A_BOUND: Final = Error("ERR min or max is not a float")
_LIMIT_ALONE: Final = Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")


class _Asked(NamedTuple):
    """The words behind the two bounds."""

    by_score: bool = False
    reverse: bool = False
    with_scores: bool = False
    skip: int = 0
    at_most: int = -1  #: negative: all


def _asked(words: list[bytes], by_score: bool, allowed: frozenset[bytes], reverse: bool = False) -> _Asked:
    asked = _Asked(by_score, reverse)
    limited = False
    at = 0
    while at < len(words):
        word = words[at].upper()
        if word not in allowed:
            raise SYNTAX
        match word:
            case b"WITHSCORES":
                asked = asked._replace(with_scores=True)
            case b"REV":
                asked = asked._replace(reverse=True)
            case b"BYSCORE":
                asked = asked._replace(by_score=True)
            case b"LIMIT":
                if at + 2 >= len(words):
                    raise SYNTAX
                asked = asked._replace(skip=whole(words[at + 1]), at_most=whole(words[at + 2]))
                limited = True
                at += 2
        at += 1
    if limited and not asked.by_score:
        raise _LIMIT_ALONE
    return asked


def _place(data: Sorted, bound: bytes, *, upper: bool) -> int:
    """Where the members within that bound begin, or where they end. `(5` is the score without 5 itself."""
    exclusive = bound[:1] == b"("
    score = real(bound[1:] if exclusive else bound, _NOT_A_BOUND)
    if exclusive is not upper:
        if score == math.inf:
            return len(data)
        score = math.nextafter(score, math.inf)
    return data.order.bisect_left((score, b""))


def _between(data: Sorted, low: bytes, high: bytes) -> tuple[int, int]:
    start, stop = _place(data, low, upper=False), _place(data, high, upper=True)
    return (start, stop) if start < stop else (0, 0)


def _range(context: Context, args: list[bytes], asked: _Asked) -> Result:
    key, first, last = args[:3]
    data = scored(context, key)
    if asked.by_score:
        low, high = (last, first) if asked.reverse else (first, last)
        start, stop = _between(data, low, high)
        if asked.skip < 0:
            return []
        count = stop - start if asked.at_most < 0 else asked.at_most
        if asked.reverse:
            stop = max(start, stop - asked.skip)
            start = max(start, stop - count)
        else:
            start = min(stop, start + asked.skip)
            stop = min(stop, start + count)
    else:
        start, stop = span(first, last, len(data))
        if asked.reverse:
            start, stop = len(data) - stop, len(data) - start
    found = list(data.order.islice(start, stop, asked.reverse))
    if not asked.with_scores:
        return [member for _, member in found]
    if context.resp3:
        return [[member, score] for score, member in found]
    flat: list[Value] = []
    for score, member in found:
        flat += (member, score)
    return flat


def zrange(context: Context, args: list[bytes]) -> Result:
    allowed = frozenset({b"WITHSCORES", b"REV", b"BYSCORE", b"LIMIT"})
    return _range(context, args, _asked(args[3:], False, allowed))


def zrevrange(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _asked(args[3:], False, frozenset({b"WITHSCORES"}), reverse=True))


def zrangebyscore(context: Context, args: list[bytes]) -> Result:
    return _range(context, args, _asked(args[3:], True, frozenset({b"WITHSCORES", b"LIMIT"})))


def zcount(context: Context, args: list[bytes]) -> Result:
    start, stop = _between(scored(context, args[0]), args[1], args[2])
    return stop - start


def drop(context: Context, key: bytes, gone: list[bytes]) -> int:
    if gone:
        context.desk.do(ChangeMembers(key, Kind.SORTED, drop=gone))
    return len(gone)


def zremrangebyscore(context: Context, args: list[bytes]) -> Result:
    data = scored(context, args[0])
    start, stop = _between(data, args[1], args[2])
    return drop(context, args[0], [member for _, member in data.order.islice(start, stop)])


COMMANDS: Final = (
    Command(b"zrange", -4, zrange, 0, 1, 1),
    Command(b"zrevrange", -4, zrevrange, 0, 1, 1),
    Command(b"zrangebyscore", -4, zrangebyscore, 0, 1, 1),
    Command(b"zcount", 4, zcount, 0, 1, 1),
    Command(b"zremrangebyscore", 4, zremrangebyscore, WRITE, 1, 1),
)
