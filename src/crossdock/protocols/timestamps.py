"""RFC 3339 as Faktory reads and writes it (faktory.md section 4.2)."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

_STAMP: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800  #: the years 1 to 9999
_LAST: Final = 253_402_300_799


def parse(text: str) -> float:
    """Seconds since 1970. Raises ValueError with the reason."""
    match = _STAMP.fullmatch(text)
    if match is None:
        raise ValueError("expected YYYY-MM-DDTHH:MM:SS, an optional fraction, and Z or ±HH:MM")
    *fields, fraction, sign, hours, minutes = match.groups()
    zone: timezone = UTC
    if sign:
        if int(hours) > 23 or int(minutes) > 59:
            raise ValueError("the zone must lie between -23:59 and +23:59")
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        zone = timezone(offset if sign == "+" else -offset)
    year, month, day, hour, minute, second = map(int, fields)
    whole = (datetime(year, month, day, hour, minute, second, tzinfo=zone) - _EPOCH).total_seconds()
    return whole + int(fraction) / 10 ** len(fraction) if fraction else whole


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    """A time outside the calendar is shown as its first or last second."""
    return (_EPOCH + timedelta(seconds=min(max(seconds, _FIRST), _LAST))).isoformat()[:19]


@lru_cache(maxsize=1_024)  # jobs pushed in one pass share their time
def stamp(at: float) -> str:
    """UTC without trailing zeros in the fraction, and without a fraction of zero (RFC3339Nano)."""
    micros = round(min(max(_FIRST, at), _LAST) * 1_000_000)
    seconds, fraction = divmod(micros, 1_000_000)
    text = _second(seconds)
    return f"{text}.{fraction:06d}".rstrip("0") + "Z" if fraction else text + "Z"
