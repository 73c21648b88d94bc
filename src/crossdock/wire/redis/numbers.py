"""Numbers in arguments, as Redis reads them."""

import math
from typing import Final

from crossdock.wire.redis.decode import integer
from crossdock.wire.redis.errors import NOT_A_FLOAT, NOT_AN_INTEGER
from crossdock.wire.redis.values import Error

INT64: Final = 2**63


def whole(text: bytes, wrong: Error = NOT_AN_INTEGER) -> int:
    value = integer(text)
    if value is None:
        raise wrong
    return value


def real(text: bytes, wrong: Error = NOT_A_FLOAT) -> float:
    """What C's strtod takes whole; no NaN."""
    try:
        value = float(text)
    except ValueError:
        raise wrong from None
    if math.isnan(value) or b"_" in text or text[:1].isspace() or text[-1:].isspace():
        raise wrong
    return value


def span(first: bytes, last: bytes, length: int) -> tuple[int, int]:
    """LRANGE's and ZRANGE's indexes as a slice of a sequence so long; an empty one if there is nothing."""
    start, stop = whole(first), whole(last)
    start = max(0, start + length if start < 0 else start)
    stop = min(length, (stop + length if stop < 0 else stop) + 1)
    return (start, stop) if start < stop else (0, 0)
