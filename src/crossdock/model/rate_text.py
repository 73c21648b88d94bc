"""Rates as text: `10/m` in settings and tasks, `10 jobs per minute` for people."""

import re
from typing import Final

_RATE: Final = re.compile(r"([0-9]{1,9})/(s|m|h|d)", re.ASCII)
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_NAMES: Final = {1.0: "second", 60.0: "minute", 3_600.0: "hour", 86_400.0: "day"}

#: Bounds of a rate limit: the tokens in its bucket, and the seconds in which it fills.
MOST_COUNT: Final = 1_000_000
LEAST_S: Final = 0.001
MOST_S: Final = 31 * 86_400.0


def parse(text: str) -> tuple[int, float]:
    """The count and the seconds of a rate such as `10/m`. Raises ValueError."""
    found = _RATE.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= MOST_COUNT:
        raise ValueError(
            f"{text[:40]!r} is not a rate; write a number from 1 to {MOST_COUNT:,} and its unit (s, m, h or d), for "
            "example 10/m for ten jobs per minute"
        )
    return int(found[1]), _UNITS[found[2]]


def describe(count: int, per_s: float) -> str:
    """`10 jobs per minute`."""
    unit = _NAMES.get(per_s) or f"{per_s:g} s"
    return f"{count:,} {'job' if count == 1 else 'jobs'} per {unit}"
