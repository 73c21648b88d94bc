"""Statistics, live: wait and run time per queue and day, booked from the very values the events carry.

Moments are (n, mean, vk) in streaming form, the histogram is qless' (seconds to a minute, minutes to an hour, hours to a
day, then days). The pipeline adds up the same events to the same numbers.
"""

from typing import Final

import msgspec

DAY: Final = 86_400

#: Days kept, counted back from the newest day booked for a queue (MODEL section 11).
STATS_DAYS: Final = 30
HISTOGRAM_DAYS: Final = 7


class Moments(msgspec.Struct, array_like=True):
    n: int = 0
    mean: float = 0.0
    vk: float = 0.0  #: sum of squared distances from the mean; variance = vk / (n - 1)
    histogram: dict[int, int] = msgspec.field(default_factory=dict)

    def book(self, value: float) -> None:
        self.n += 1
        before = value - self.mean
        self.mean += before / self.n
        self.vk += before * (value - self.mean)
        bucket = bucket_of(value)
        self.histogram[bucket] = self.histogram.get(bucket, 0) + 1


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
    __slots__ = ("_last", "days")

    def __init__(self, days: dict[str, dict[int, QueueDay]] | None = None) -> None:
        self.days: dict[str, dict[int, QueueDay]] = days or {}
        self._last: tuple[str, int, QueueDay | None] = ("", -1, None)

    def on(self, queue: str, at: float) -> QueueDay:
        """The page of that queue for the UTC day of `at`. Most bookings in a row are for the same one."""
        day = int(at // DAY) * DAY
        name, last_day, page = self._last
        if page is not None and day == last_day and name == queue:
            return page
        days = self.days.setdefault(queue, {})
        page = days.get(day)
        if page is None:
            page = days[day] = QueueDay()
            self._forget_old(days)
        self._last = (queue, day, page)
        return page

    @staticmethod
    def _forget_old(days: dict[int, QueueDay]) -> None:
        newest = max(days)
        for day in [day for day in days if day <= newest - STATS_DAYS * DAY]:
            del days[day]
        for day, page in days.items():
            if day <= newest - HISTOGRAM_DAYS * DAY:
                page.wait.histogram.clear()
                page.run.histogram.clear()
