"""Numbers in arguments, as Redis reads them."""

import math
import re
from typing import Final

from crossdock.protocols.redis.resp.decode import integer
from crossdock.protocols.redis.resp.values import NOT_A_FLOAT, NOT_AN_INTEGER, NOT_POSITIVE, Error

INT64: Final = 2**63

#: What C's strtod reads as a number, NaN aside.
_REAL: Final = re.compile(
    rb"[+-]?(?:inf(?:inity)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
    rb"|(?P<hex>0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?\d+)?))",
    re.IGNORECASE,
)
_NOT_ZERO: Final = re.compile(rb"[+-]?(?:0x[0.]*[1-9a-f]|[0.]*[1-9])", re.IGNORECASE)


def whole(text: bytes, wrong: Error = NOT_AN_INTEGER) -> int:
    value = integer(text)
    if value is None:
        raise wrong
    return value


def positive(text: bytes) -> int:
    """Or zero."""
    value = whole(text, NOT_POSITIVE)
    if value < 0:
        raise NOT_POSITIVE
    return value


def _strtod(text: bytes) -> float | None:
    found = _REAL.fullmatch(text)
    if found is None:
        return None
    if found["hex"] is None:
        return float(text)
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if text[:1] == b"-" else math.inf


def real(text: bytes, wrong: Error = NOT_A_FLOAT) -> float:
    """What C's strtod takes whole; no NaN, and nothing that a double cannot hold."""
    value = _strtod(text)
    if value is None:
        raise wrong
    if (not value and _NOT_ZERO.match(text)) or (math.isinf(value) and b"n" not in text.lower()):
        raise wrong
    return value


def wide(text: bytes, wrong: Error) -> float:
    """What a long double holds, as far as a double tells it: too much is infinite, too little is not zero."""
    value = _strtod(text)
    if value is None:
        raise wrong
    return value or math.copysign(bool(_NOT_ZERO.match(text)) * math.ulp(0.0), value)


def bound(text: bytes, wrong: Error) -> tuple[float, bool]:
    """Of a range of scores, and whether it is left out, as `(5` is. What no double holds is zero or infinite here; so
    is nothing at all zero."""
    exclusive = text[:1] == b"("
    rest = text[exclusive:]
    value = _strtod(rest.lstrip()) if rest else 0.0
    if value is None:
        raise wrong
    return value, exclusive


def span(start: int, stop: int, length: int) -> tuple[int, int]:
    """LRANGE's and ZRANGE's indexes as a slice of a sequence so long; an empty one if there is nothing."""
    start = max(0, start + length if start < 0 else start)
    stop = min(length, (stop + length if stop < 0 else stop) + 1)
    return (start, stop) if start < stop else (0, 0)
