"""How long statistics are kept (MODEL section 11): two settings of qless' that engine and pipeline read alike."""

from collections.abc import Mapping
from typing import Final

STATS_HISTORY: Final = "stats-history"
HISTOGRAM_HISTORY: Final = "histogram-history"

#: Days, where nobody set them.
STATS_DAYS: Final = 30
HISTOGRAM_DAYS: Final = 7
DAYS_AT_MOST: Final = 3_650


def of(config: Mapping[str, str | None]) -> tuple[float, float]:
    """Days of statistics, and of histograms. The newest one is always kept: the others are counted back from it."""
    stats = number(config.get(STATS_HISTORY), STATS_DAYS)
    histogram = number(config.get(HISTOGRAM_HISTORY), HISTOGRAM_DAYS)
    return max(1.0, min(DAYS_AT_MOST, stats)), max(1.0, min(DAYS_AT_MOST, histogram))


def number(value: str | None, default: float) -> float:
    """A setting that is a number, as qless' scripts read them; what is none counts as the default."""
    if value is None or "_" in value or not value.isascii():  # which only Python takes for numbers
        return default
    try:
        found = float.fromhex(value) if value.strip().lstrip("+-")[:2] in ("0x", "0X") else float(value)
    except (ValueError, OverflowError):
        return default
    return found if found == found else default  # NaN would stand nowhere in any order
