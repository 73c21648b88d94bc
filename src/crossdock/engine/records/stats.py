"""Live statistics: wait and run time per queue and day, from the values in the events.

Moments are (n, mean, vk) in streaming form. The histogram is that of the original protocol document (seconds to a
minute, minutes to an hour, quarters of an hour to a day, hours to three days, then days). `coarse` converts it to
the histogram that qless clients know.

The pipeline computes the same numbers from the same events and must forget the same values. So what is forgotten
depends only on bookings, settings and their order, and it does not come back (model.md section 11).
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final

import msgspec
from msgspec.structs import replace

from crossdock.model.clock import DAY, day_of
from crossdock.model.stats_retention import HISTOGRAM_DAYS, STATS_DAYS

#: Queues that have statistics. With more of them, those without a new day for longest are forgotten: queue names come
#: and go.
QUEUES_AT_MOST: Final = 100_000

#: What is counted. CURRENTLY_FAILED goes down when a failed job is retried or removed. RETRY is an expired lease.
WAIT, RUN, FAILURE, CURRENTLY_FAILED, RETRY = range(5)

_ADD_AT: Final = 512

#: The first bucket of each unit.
_QUARTERS: Final = 119
_HOURS: Final = 211
_DAYS: Final = 259
#: Times by callers' clocks may have any length, and may be negative. Longer times are in this bucket, negative ones in
#: -1.
_LAST: Final = 1_998

_NOTHING_GONE: Final = (-inf, -inf)
_NO_PAGE: Final[tuple[int, int, tuple[list[float], ...]]] = (0, 0, ())


class Moments(msgspec.Struct, array_like=True):
    n: int = 0
    mean: float = 0.0
    vk: float = 0.0  #: sum of squared distances from the mean; variance = vk / (n - 1)
    histogram: dict[int, int] = msgspec.field(default_factory=dict)

    def add(self, values: Sequence[float], counted: bool = True) -> None:
        """`counted`: also in the histogram."""
        if not values:
            return
        n, mean, vk = self.n, self.mean, self.vk
        for value in values:
            n += 1
            before = value - mean
            mean += before / n
            vk += before * (value - mean)
        self.n, self.mean, self.vk = n, mean, vk
        if counted:
            within_a_minute = min(values) >= 0 and max(values) < 60
            for bucket, times in Counter(map(int if within_a_minute else bucket_of, values)).items():
                self.histogram[bucket] = self.histogram.get(bucket, 0) + times


def bucket_of(value: float) -> int:
    """0-59 seconds, 60-118 minutes 1-59, 119-210 quarters of an hour 4-95, 211-258 hours 24-71, from 259 days 3 and up;
    -1 for a negative value."""
    whole = int(value // 1)
    if whole < 60:
        return max(-1, whole)
    if whole < 3_600:
        return 59 + whole // 60
    if whole < DAY:
        return _QUARTERS - 4 + whole // 900
    if whole < 3 * DAY:
        return _HOURS - 24 + whole // 3_600
    return min(_LAST, _DAYS - 3 + whole // DAY)


def coarse(bucket: int) -> int:
    """The bucket in the histogram that qless clients know: 119-141 hours 1-23, from 142 days 1 and up."""
    if bucket < _QUARTERS:
        return bucket
    if bucket < _HOURS:
        return 118 + (bucket - _QUARTERS + 4) // 4
    if bucket < _DAYS:
        return 141 + (bucket - _HOURS + 24) // 24
    return 141 + bucket - _DAYS + 3


class QueueDay(msgspec.Struct, array_like=True):
    wait: Moments = msgspec.field(default_factory=Moments)
    run: Moments = msgspec.field(default_factory=Moments)
    failures: int = 0
    failed: int = 0
    retries: int = 0


class Stats:
    """Collects values in a list per queue and adds them in a loop by the hundred.

    The sums depend only on the order of the values, not on when they are added.
    """

    __slots__ = ("_days", "_open", "gone", "histogram_days", "stats_days")

    def __init__(
        self,
        days: dict[str, dict[int, QueueDay]] | None = None,
        gone: dict[str, tuple[float, float]] | None = None,
        stats_days: float = STATS_DAYS,
        histogram_days: float = HISTOGRAM_DAYS,
    ) -> None:
        self._days: dict[str, dict[int, QueueDay]] = days or {}
        #: the first second of the day, and of the next one
        self._open: dict[str, tuple[int, int, tuple[list[float], ...]]] = {}
        #: By queue, as `_limits`, if less was kept before than now.
        self.gone: dict[str, tuple[float, float]] = gone or {}
        self.stats_days, self.histogram_days = stats_days, histogram_days

    def book(self, queue: str, at: float, what: int, value: float) -> None:
        """Count a value on the UTC day of `at`, which is the server's time or a caller's."""
        start, end, lists = self._open.get(queue, _NO_PAGE)
        if not start <= at < end:
            lists = self._turn_page(queue, at)
        values = lists[what]
        values.append(value)
        if len(values) >= _ADD_AT:
            self._add(queue)

    def keep(self, stats_days: float, histogram_days: float) -> None:
        """Set how many days are kept. What was forgotten does not come back."""
        if (stats_days, histogram_days) != (self.stats_days, self.histogram_days):
            self._add_all()
            self.gone = {queue: self._limits(queue, max(days)) for queue, days in self._days.items()}
            self.stats_days, self.histogram_days = stats_days, histogram_days
            for queue, days in self._days.items():
                self._forget_old(queue, days, max(days))

    def _turn_page(self, queue: str, at: float) -> tuple[list[float], ...]:
        self._add(queue)
        if len(self._open) >= QUEUES_AT_MOST:
            self._add(next(iter(self._open)))
        start = day_of(at) * DAY
        self._begin(queue, start)
        lists: tuple[list[float], ...] = ([], [], [], [], [])
        self._open[queue] = (start, start + DAY, lists)
        return lists

    @property
    def days(self) -> dict[str, dict[int, QueueDay]]:
        """queue → first second of the UTC day → its statistics. A read: days with values that are not added yet are
        copied.
        """
        if not self._open:
            return self._days
        return {queue: self._of(queue, days) for queue, days in self._days.items()}

    def page(self, queue: str, day: int) -> QueueDay | None:
        """The statistics of a queue for the UTC day that begins in that second."""
        page = self._days.get(queue, {}).get(day)
        start, _, lists = self._open.get(queue, _NO_PAGE)
        return self._with(page, queue, start, lists) if page is not None and lists and start == day else page

    def _of(self, queue: str, days: dict[int, QueueDay]) -> dict[int, QueueDay]:
        start, _, lists = self._open.get(queue, _NO_PAGE)
        page = days.get(start) if lists else None
        return days if page is None else days | {start: self._with(page, queue, start, lists)}

    def _with(self, page: QueueDay, queue: str, start: int, lists: tuple[list[float], ...]) -> QueueDay:
        """A copy of a day with the values that are not added yet."""
        wait, run = (replace(each, histogram=dict(each.histogram)) for each in (page.wait, page.run))
        found = replace(page, wait=wait, run=run)
        self._add_to(found, queue, start, lists)
        return found

    def _add_all(self) -> None:
        for queue in list(self._open):
            self._add(queue)

    def _add(self, queue: str) -> None:
        """Collected values may be too old to be kept."""
        start, _, lists = self._open.pop(queue, _NO_PAGE)
        page = self._days.get(queue, {}).get(start) if lists else None
        if page is not None:
            self._add_to(page, queue, start, lists)

    def _add_to(self, page: QueueDay, queue: str, start: int, lists: tuple[list[float], ...]) -> None:
        wait, run, failures, failed, retries = lists
        counted = start > self._limits(queue, max(self._days[queue]))[1]
        page.wait.add(wait, counted)
        page.run.add(run, counted)
        page.failures += len(failures)
        page.failed += int(sum(failed))
        page.retries += len(retries)

    def _begin(self, queue: str, day: int) -> None:
        """A day begins with its first value, not when that value is added, so reads do not affect what is kept."""
        days = self._days.get(queue)
        if days is not None and day in days:
            return
        newest = max(day, *days) if days else day
        if days:
            self._forget_old(queue, days, newest)
        if day > self._limits(queue, newest)[0]:
            days = self._days.pop(queue, {})
            if len(self._days) >= QUEUES_AT_MOST:
                gone = next(iter(self._days))
                del self._days[gone]
                self.gone.pop(gone, None)
                self._open.pop(gone, None)
            self._days[queue] = days
            days[day] = QueueDay()

    def _limits(self, queue: str, newest: int) -> tuple[float, float]:
        """Days up to the first value and histograms up to the second are forgotten."""
        pages, histograms = self.gone.get(queue, _NOTHING_GONE)
        pages = max(pages, newest - self.stats_days * DAY)
        return pages, max(histograms, pages, newest - self.histogram_days * DAY)

    def _forget_old(self, queue: str, days: dict[int, QueueDay], newest: int) -> None:
        pages, histograms = self._limits(queue, newest)
        for day in [day for day in days if day <= pages]:
            del days[day]
        for day, page in days.items():
            if day <= histograms:
                page.wait.histogram.clear()
                page.run.histogram.clear()
