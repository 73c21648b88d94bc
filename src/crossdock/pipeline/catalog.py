"""All tables: the facts that batches add to, and what is made of them for each day they touch."""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from crossdock.pipeline.delta import Table
from crossdock.pipeline.transforms.attempts import ATTEMPTS, attempts
from crossdock.pipeline.transforms.bookings import BOOKINGS, bookings, merge_bookings
from crossdock.pipeline.transforms.daily import DAILY, HISTOGRAM, daily, histogram
from crossdock.pipeline.transforms.error_groups import FAILING, FAILURES, failing, failures, merge_failing
from crossdock.pipeline.transforms.flows import FLOWS
from crossdock.pipeline.transforms.hourly import FORECAST, HOURLY, forecast, hourly
from crossdock.pipeline.transforms.links import LINKS, links
from crossdock.pipeline.transforms.queue_flow import TALLIES, merge_tallies, tallies
from crossdock.pipeline.transforms.settings import SETTINGS, settings
from crossdock.pipeline.transforms.workers import RETRIES, WORKERS, retries, workers

Transform = Callable[[DataFrame], DataFrame]


class Keep(Enum):
    """How long, and by which clock."""

    PAGES = auto()  #: with the live page: `stats-history`, counted back from the newest day booked on its queue
    HISTOGRAM = auto()  #: with the live histogram, by `histogram-history`
    STATS = auto()  #: `stats-history`, counted back from the newest date of the lake
    LAKE = auto()  #: as long as the lake has the events of that date
    EVER = auto()  #: a few rows an hour


class Fact(NamedTuple):
    """Rows that a batch of events adds."""

    name: str
    schema: StructType
    of: Transform
    keep: Keep
    merge: Transform | None = None  #: many rows of several batches into fewer


class View(NamedTuple):
    """A table of each day, made anew from the day's facts whenever they change."""

    name: str
    schema: StructType
    fact: str
    of: Transform | None  #: None: it needs more than the facts of its days
    keep: Keep = Keep.STATS


FACTS: Final = (
    Fact("attempts", ATTEMPTS, attempts, Keep.LAKE),
    Fact("bookings", BOOKINGS, bookings, Keep.PAGES, merge_bookings),
    Fact("tallies", TALLIES, tallies, Keep.EVER, merge_tallies),
    Fact("failing", FAILING, failing, Keep.STATS, merge_failing),
    Fact("links", LINKS, links, Keep.LAKE),
    Fact("settings", SETTINGS, settings, Keep.EVER),
)

VIEWS: Final = (
    View("histogram", HISTOGRAM, "bookings", histogram, Keep.HISTOGRAM),
    View("daily", DAILY, "bookings", daily, Keep.PAGES),
    View("hourly", HOURLY, "tallies", hourly),
    View("forecast", FORECAST, "tallies", None),
    View("failures", FAILURES, "failing", failures),
    View("workers", WORKERS, "attempts", workers),
    View("retries", RETRIES, "attempts", retries),
    View("flows", FLOWS, "links", None, Keep.LAKE),
)

#: `forecast` of all tallies there are.
FORECASTS: Final = forecast

#: Attempts are of use as they are; the other facts are only of use to what is made of them.
_PUBLIC: Final = {"attempts", *(view.name for view in VIEWS)}


class Catalog:
    """The tables in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tables = {each.name: Table(self._place(each.name), each.schema) for each in (*FACTS, *VIEWS)}

    def __getitem__(self, name: str) -> Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[Table]:
        return iter(self._tables.values())

    def _place(self, name: str) -> Path:
        return self.folder / name if name in _PUBLIC else self.folder / "facts" / name
