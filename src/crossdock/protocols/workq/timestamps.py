"""Times as Workq reads and writes them: UTC, capital T and Z, no offset (page section 2)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

_STAMP: Final = re.compile(rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION: Final = 10  #: digits that can matter to a float
_FIRST: Final = -62_135_596_800  #: the years 1 to 9999
_LAST: Final = 253_402_300_799


def parse(text: bytes) -> float | None:
    """Seconds since 1970; None unless it is a real date in that one form. A fraction of a second is tolerated."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    *fields, fraction = match.groups()
    year, month, day, hour, minute, second = map(int, fields)
    try:
        whole = (datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH).total_seconds()
    except ValueError:
        return None
    return whole + float(fraction[:_FRACTION]) if fraction else whole


@lru_cache(maxsize=1_024)
def stamp(at: float) -> bytes:
    """Whole seconds. A time beyond the calendar is shown as its first or last second."""
    seconds = min(max(_FIRST, at), _LAST) // 1
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()[:19].encode() + b"Z"
