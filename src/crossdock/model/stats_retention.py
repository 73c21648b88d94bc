"""How long statistics are kept (model.md section 11): two qless settings that the engine and the pipeline read in the
same way.
"""

from collections.abc import Mapping
from typing import Final

STATS_HISTORY: Final = "stats-history"
HISTOGRAM_HISTORY: Final = "histogram-history"

#: The default, in days.
STATS_DAYS: Final = 30
HISTOGRAM_DAYS: Final = 7
DAYS_AT_MOST: Final = 3_650


def of(config: Mapping[str, str | None]) -> tuple[float, float]:
    """Days of statistics, and days of histograms. The newest day is always kept, and the others count back from it."""
    stats = number(config.get(STATS_HISTORY), STATS_DAYS)
    histogram = number(config.get(HISTOGRAM_HISTORY), HISTOGRAM_DAYS)
    return max(1.0, min(DAYS_AT_MOST, stats)), max(1.0, min(DAYS_AT_MOST, histogram))


def number(value: str | None, default: float) -> float:
    """A setting as a number, as the qless scripts read it. Anything else counts as the default."""
    if value is None or "_" in value or not value.isascii():  # Python alone accepts these as numbers
        return default
    try:
        found = float.fromhex(value) if value.strip().lstrip("+-")[:2] in ("0x", "0X") else float(value)
    except (ValueError, OverflowError):
        return default
    return found if found == found else default  # NaN has no place in a sorted list
