"""How long things took: moments and percentiles of waits and runs, merged from the rows of kinds, days and flushes.

Moments are merged by Chan's formula (docs/explain/pipeline.md says why). A percentile of several days, or of a queue of
several kinds, is that of all their values together: counts in buckets that grow by 4 % are added up, and the bucket is
found in which the value lies. It is no mean of percentiles, and within 1.97 % of the exact one.
"""

from collections import Counter
from math import ceil
from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.tables import Reader
from crossdock.pipeline.transforms.durations import GAMMA, NOTHING

EVENTS: Final = ("wait", "run")
_MOMENTS: Final = ("total", "mean", "vk", "max")


class Spread(msgspec.Struct):
    """In seconds. None: there were no values."""

    total: int
    mean: float | None
    variance: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


class Times:
    """Grows by moments and by counts in buckets, which come from different tables."""

    def __init__(self) -> None:
        self.total = 0
        self.mean = 0.0
        self.m2 = 0.0
        self.max: float | None = None
        self._buckets: Counter[int] = Counter()

    def add(self, total: int, mean: float, m2: float, most: float | None) -> None:
        if not total:
            return
        apart, whole = mean - self.mean, self.total + total
        self.m2 += m2 + apart * apart * self.total * total / whole
        self.mean += apart * total / whole
        self.total = whole
        if most is not None:
            self.max = most if self.max is None else max(most, self.max)

    def count(self, bucket: int, n: int) -> None:
        self._buckets[bucket] += n

    def spread(self) -> Spread:
        if not self.total:
            return Spread(0, None, None, None, None, None, None)
        variance = self.m2 / (self.total - 1) if self.total > 1 else 0.0
        p50, p95, p99 = map(self._percentile, (0.5, 0.95, 0.99))
        return Spread(self.total, self.mean, variance, p50, p95, p99, self.max)

    def _percentile(self, share: float) -> float | None:
        rank, upto = ceil(share * self._buckets.total()), 0
        for bucket in sorted(self._buckets):
            upto += self._buckets[bucket]
            if upto >= rank:
                middle = 0.0 if bucket == NOTHING else GAMMA**bucket * 2 / (GAMMA + 1)
                return middle if self.max is None else min(middle, self.max)
        return None


class Booked:
    """What was booked on a queue, a kind or a day."""

    def __init__(self) -> None:
        self.times = {event: Times() for event in EVENTS}
        self.failures = self.failed = self.retries = 0


def booked(reader: Reader, by: tuple[str, ...], where: Any = None) -> dict[tuple[Any, ...], Booked]:
    """By these columns of `daily`: date, queue, kind. Percentiles are from the bookings, which are kept as long."""
    found: dict[tuple[Any, ...], Booked] = {}
    moments = [f"{event}_{name}" for event in EVENTS for name in _MOMENTS]
    counts = ("failures", "failed", "retries")
    for row in reader.rows("daily", [*by, *moments, *counts], where):
        here = found.setdefault(tuple(row[name] for name in by), Booked())
        for event in EVENTS:
            here.times[event].add(*(row[f"{event}_{name}"] for name in _MOMENTS))
        here.failures += row["failures"]
        here.failed += row["failed"]
        here.retries += row["retries"]
    for row in reader.sums("bookings", [*by, "event", "log"], {"n": "sum"}, where):
        key = tuple(row[name] for name in by)
        if key in found and row["event"] in EVENTS:
            found[key].times[row["event"]].count(row["log"], row["n"])
    return found
