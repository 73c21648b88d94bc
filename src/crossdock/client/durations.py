"""Durations as people write them: `"10m"`, `"1h 30m"`, `"5 minutes"`, seconds, or a timedelta."""

import math
import re
from datetime import timedelta
from typing import Final, TypeAlias

#: A number of seconds, a text such as "10m", or a timedelta.
Duration: TypeAlias = float | str | timedelta

_UNITS: Final = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3_600.0,
    "hour": 3_600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "w": 604_800.0,
    "week": 604_800.0,
}
_PART: Final = re.compile(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]+)\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\s*\d{1,15}(?:\.\d{1,9})?\s*", re.ASCII)
_LONGEST: Final = 100  #: characters


def seconds(duration: Duration) -> float:
    """The number of seconds, zero or more. Raises ValueError, which says how to write a duration."""
    if isinstance(duration, str):
        found = _read(duration)
    elif isinstance(duration, timedelta):
        found = duration.total_seconds()
    elif isinstance(duration, (int, float)) and not isinstance(duration, bool):
        found = float(duration)
    else:
        raise _invalid(duration)
    if not 0 <= found < math.inf:
        raise _invalid(duration)
    return found


def _read(text: str) -> float:
    if len(text) > _LONGEST:
        raise _invalid(f"{text[:_LONGEST]}…")
    if _NUMBER.fullmatch(text):
        return float(text)
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text.lower(), at)
        if part is None:
            raise _invalid(text)
        unit = part[2] if part[2] in _UNITS else part[2].removesuffix("s")
        if unit not in _UNITS:
            raise _invalid(text)
        total += float(part[1]) * _UNITS[unit]
        at = part.end()
    if not at:
        raise _invalid(text)
    return total


def _invalid(what: object) -> ValueError:
    return ValueError(f"{what!r} is not a duration; write seconds, a timedelta, or for example '45s', '10m' or '2h'")
