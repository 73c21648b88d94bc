"""Intervals of plans (protocol page 8): years and months by the calendar, then days and time of day, in UTC."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

_WORDS: Final = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.ASCII
)
#: Neither a next run nor the way to it is beyond what a calendar can tell.
_DIGITS_AT_MOST: Final = 9
_NEVER: Final = float("inf")


class Interval(NamedTuple):
    months: int
    seconds: int


@lru_cache(maxsize=1_024)
def parse(text: str) -> Interval:
    """As `recurrenceInterval` spells it: `P0Y1M0DT0H0M0S`. Raises ValueError, with what is wrong."""
    found = _WORDS.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"the interval {text[:64]!r} is not written like P1Y2M3DT4H5M6S")
    if any(part is not None and len(part) > _DIGITS_AT_MOST for part in found.groups()):
        raise ValueError(f"the interval {text[:64]!r} is too long")
    years, months, weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    interval = Interval(years * 12 + months, (weeks * 7 + days) * 86_400 + hours * 3_600 + minutes * 60 + seconds)
    if not any(interval):
        raise ValueError(f"the interval {text[:64]!r} is no time at all: its plan would never come to an end")
    return interval


def step(interval: Interval, start: float) -> float:
    """One interval later; infinity where the calendar ends. A day that its month does not have runs over into the
    next one, and stays there."""
    if not interval.months:
        return start + interval.seconds
    try:
        at = datetime.fromtimestamp(start, UTC)
        months = at.year * 12 + at.month - 1 + interval.months
        year, month = months // 12, months % 12 + 1
        over = max(0, at.day - monthrange(year, month)[1])
        at = at.replace(year=year, month=month, day=at.day - over) + timedelta(days=over)
        return at.timestamp() + interval.seconds
    except (ValueError, OverflowError, OSError):
        return _NEVER


def after(interval: Interval, start: float, now: float) -> float:
    """The first run behind `now`: from `start` on, interval by interval. A start that is still to come is kept."""
    if not interval.months and start <= now:
        return start + ((now - start) // interval.seconds + 1) * interval.seconds
    while start <= now:
        start = step(interval, start)
    return start
