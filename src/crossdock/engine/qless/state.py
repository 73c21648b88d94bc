"""What the engine knows beside the job for qless: its lists, its settings, recurring jobs and watched jids.

Only apply functions may write here."""

from typing import TypeAlias

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.qless.quirks.stray_entries import StaleListings, StrayEntries
from crossdock.model.job import Number
from crossdock.model.records import Interval

ByCaller: TypeAlias = tuple[float, str, Number]  #: time by callers' clocks, jid, number


class QlessState:
    __slots__ = ("completed", "config", "failed_in", "intervals", "stale_listings", "stray_entries", "watched")

    def __init__(self) -> None:
        self.completed: SortedList[ByCaller] = SortedList()  #: successful jobs that are kept
        self.failed_in: dict[str, SortedList[tuple[int, Number]]] = {}  #: by group: failed jobs that are kept
        self.stale_listings = StaleListings()
        self.stray_entries = StrayEntries()
        self.watched: dict[str, float] = {}  #: jids, alive or not, and since when
        self.config: dict[str, str] = {}
        self.intervals: dict[str, Interval] = {}
