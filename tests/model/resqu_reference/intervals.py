"""The intervals of plans, by the calendar rules of resqu.md section 8. All times are UTC.

Years and months are added to the calendar fields. A day that the month does not have runs over into the next month.
Days and the time of day are added after that.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import inf
from typing import Final

_UNITS: Final = {"W": 604_800, "D": 86_400, "TH": 3_600, "TM": 60, "TS": 1}
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST_YEAR: Final = 9999


@dataclass(frozen=True)
class Interval:
    months: int
    seconds: int

    def after(self, start: float) -> float:
        """One interval after `start`; infinity beyond the last year of the calendar."""
        return _months_later(start, self.months) + self.seconds


def read(text: str) -> Interval:
    """Read `P1Y2M3DT4H5M6S`. Any part may be missing."""
    amounts: dict[str, int] = {}
    part = digits = ""
    for letter in text.removeprefix("P"):
        if letter == "T":
            part = "T"
        elif letter.isdigit():
            digits += letter
        else:
            amounts[part + letter] = int(digits)
            digits = ""
    months = 12 * amounts.pop("Y", 0) + amounts.pop("M", 0)
    return Interval(months, sum(_UNITS[unit] * amount for unit, amount in amounts.items()))


def _months_later(start: float, months: int) -> float:
    if not months:
        return start
    day, time_of_day = divmod(start, 86_400)
    before = datetime.fromtimestamp(day * 86_400, UTC)
    years, month = divmod(before.month - 1 + months, 12)
    if before.year + years > _LAST_YEAR:
        return inf
    first_of_month = date(before.year + years, month + 1, 1).toordinal() - _EPOCH
    return (first_of_month + before.day - 1) * 86_400 + time_of_day
