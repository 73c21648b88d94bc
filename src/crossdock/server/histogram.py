"""Histograms with fixed bounds: counts since the start for Prometheus, and quantiles of the last hour."""

from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from typing import Final

#: Windows of a histogram. Together they cover the last hour.
WINDOWS: Final = 12

_STEPS: Final = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)

#: Bounds for times, in seconds: ten per power of ten, so that a quantile is within about 10 % of the exact value.
SECONDS: Final = tuple(
    sorted({round(step * 10.0**power, 6) for power in range(-4, 5) for step in _STEPS} | {1_800.0, 3_600.0, 86_400.0})
)
#: Bounds for sizes in bytes.
BYTES: Final = tuple(256.0 * 4**power for power in range(10))
#: Bounds for counts, such as the events of a journal entry.
COUNTS: Final = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 10_000.0)


class Histogram:
    __slots__ = ("_bounds", "_recent", "counts", "sum")

    def __init__(self, bounds: Sequence[float], *, recent: bool = False) -> None:
        """`recent`: also keep the windows that `quantiles` needs."""
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  #: since the start, by bucket; the last one has no upper bound
        self.sum = 0.0
        #: newest last; None: nothing was counted in that window
        self._recent: deque[array[int] | None] | None = deque([None], maxlen=WINDOWS) if recent else None

    def add(self, values: Sequence[float]) -> None:
        """Count values together: the loops run in C. Negative times, which wrong clocks cause, count as 0."""
        if not values:
            return
        if min(values) < 0:
            values = [max(0.0, value) for value in values]
        self.sum += sum(values)
        counts, window = self.counts, self._window()
        for bucket, times in Counter(map(bisect_left, repeat(self._bounds), values)).items():
            counts[bucket] += times
            if window is not None:
                window[bucket] += times

    def _window(self) -> "array[int] | None":
        recent = self._recent
        if recent is None:
            return None
        window = recent[-1]
        if window is None:
            window = recent[-1] = array("I", bytes(array("I").itemsize * len(self.counts)))
        return window

    def turn(self) -> None:
        """Begin the next window. The oldest one is dropped."""
        if self._recent is not None:
            self._recent.append(None)

    def cumulative(self, bounds: Iterable[float]) -> list[int]:
        """How many values since the start are at most each of these bounds, which are some of the histogram's, and how
        many there are in all."""
        totals = list(accumulate(self.counts))
        return [totals[bisect_left(self._bounds, bound)] for bound in bounds] + [totals[-1]]

    def quantiles(self, shares: Iterable[float]) -> tuple[int, list[float | None]]:
        """The number of values in the windows, and the value below which each share of them is. A value is interpolated
        within its bucket. None: there are no values."""
        windows = [window for window in self._recent or () if window is not None]
        totals = list(accumulate(map(sum, zip(*windows, strict=True)))) if windows else [0]
        count = totals[-1]
        return count, [self._quantile(totals, count * share) if count else None for share in shares]

    def _quantile(self, totals: Sequence[int], rank: float) -> float:
        bucket = bisect_left(totals, rank)
        if bucket >= len(self._bounds):
            return self._bounds[-1]
        lower = self._bounds[bucket - 1] if bucket else 0.0
        below = totals[bucket - 1] if bucket else 0
        share = (rank - below) / (totals[bucket] - below)
        return lower + (self._bounds[bucket] - lower) * share
