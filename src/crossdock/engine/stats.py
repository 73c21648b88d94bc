"""Statistics, live: wait and run time per queue and day, booked from the very values the events carry.

Moments are (n, mean, vk) in streaming form, the histogram is qless' (seconds to a minute, minutes to an hour, hours to
a day, then days). The pipeline adds up the same events to the same numbers.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

DAY: Final = 86_400

#: Days kept, counted back from the newest day booked for a queue (MODEL section 11).
STATS_DAYS: Final = 30
HISTOGRAM_DAYS: Final = 7

WAIT, RUN, FAILURE = 0, 1, 2

_FOLD_AT: Final = 512


class Moments(msgspec.Struct, array_like=True):
    n: int = 0
    mean: float = 0.0
    vk: float = 0.0  #: sum of squared distances from the mean; variance = vk / (n - 1)
    histogram: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, values: Iterable[float]) -> None:
        n, mean, vk, histogram = self.n, self.mean, self.vk, self.histogram
        for value in values:
            n += 1
            before = value - mean
            mean += before / n
            vk += before * (value - mean)
            bucket = int(value) if 0 <= value < 60 else bucket_of(value)
            histogram[bucket] = histogram.get(bucket, 0) + 1
        self.n, self.mean, self.vk = n, mean, vk


def bucket_of(value: float) -> int:
    """0-59 seconds, 60-118 minutes 1-59, 119-141 hours 1-23, from 142 days 1 and up; below 0 for a negative value."""
    whole = int(value // 1)
    if whole < 60:
        return whole
    if whole < 3_600:
        return 59 + whole // 60
    if whole < DAY:
        return 118 + whole // 3_600
    return 141 + whole // DAY


class QueueDay(msgspec.Struct, array_like=True):
    wait: Moments = msgspec.field(default_factory=Moments)
    run: Moments = msgspec.field(default_factory=Moments)
    failures: int = 0


class Stats:
    """Books values by the hundred: most bookings in a row are for the same page, and a loop of its own is cheap.

    The sums do not depend on when the values are added in, only on their order.
    """

    __slots__ = ("_booked", "_days")

    def __init__(self, days: dict[str, dict[int, QueueDay]] | None = None) -> None:
        self._days: dict[str, dict[int, QueueDay]] = days or {}
        self._booked: list[tuple[str, float, int, float]] = []

    def book(self, queue: str, at: float, what: int, value: float) -> None:
        """`what` is WAIT, RUN or FAILURE; the page is that of the UTC day of `at`."""
        self._booked.append((queue, at, what, value))
        if len(self._booked) >= _FOLD_AT:
            self._fold()

    @property
    def days(self) -> dict[str, dict[int, QueueDay]]:
        """queue → first second of the UTC day → what happened on it."""
        self._fold()
        return self._days

    def _fold(self) -> None:
        name, start, lists = "", -1, _lists()
        for queue, at, what, value in self._booked:
            if queue != name or not start <= at < start + DAY:
                self._add(name, start, lists)
                name, start, lists = queue, int(at // DAY) * DAY, _lists()
            lists[what].append(value)
        self._add(name, start, lists)
        self._booked.clear()

    def _add(self, queue: str, day: int, lists: tuple[list[float], ...]) -> None:
        if any(lists):
            page = self._page(queue, day)
            page.wait.add(lists[WAIT])
            page.run.add(lists[RUN])
            page.failures += len(lists[FAILURE])

    def _page(self, queue: str, day: int) -> QueueDay:
        days = self._days.setdefault(queue, {})
        page = days.get(day)
        if page is None:
            page = days[day] = QueueDay()
            _forget_old(days)
        return page


def _lists() -> tuple[list[float], ...]:
    """Values by what they are: WAIT, RUN, FAILURE."""
    return [], [], []


def _forget_old(days: dict[int, QueueDay]) -> None:
    newest = max(days)
    for day in [day for day in days if day <= newest - STATS_DAYS * DAY]:
        del days[day]
    for day, page in days.items():
        if day <= newest - HISTOGRAM_DAYS * DAY:
            page.wait.histogram.clear()
            page.run.histogram.clear()
