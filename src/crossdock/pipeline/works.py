"""What every job of the pipeline works with: a session, the lake, the tables, and how long things are kept."""

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pyarrow import compute as pc
from pyspark.sql import DataFrame, SparkSession

from crossdock.pipeline.catalog import Catalog
from crossdock.pipeline.delta import nothing
from crossdock.pipeline.ledger import Ledger
from crossdock.pipeline.segments import Segment
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA
from crossdock.pipeline.transforms.links import HISTOGRAM_HISTORY, STATS_HISTORY

#: Told what is done, how much of it and of how much.
Progress = Callable[[str, int, int], None]


def unheard(what: str, done: int, of: int) -> None:
    pass


class Terms(NamedTuple):
    """Days that things are kept, counted back from the newest; those of statistics are the server's own settings."""

    stats: float = 30
    histogram: float = 7
    lake: float = float("inf")


class Works:
    def __init__(
        self, spark: SparkSession, lake: Path, tables: Path, *, keep_days: float = 0, progress: Progress = unheard
    ) -> None:
        self.spark = spark
        self.lake = lake.absolute()
        self.tables_folder = tables.absolute()
        self.catalog = Catalog(self.tables_folder)
        self.ledger = Ledger(self.tables_folder / "facts" / "segments")
        self.progress = progress
        self._keep_days = keep_days or float("inf")

    def prepare(self) -> None:
        """Make what is not there, and clear away what a killed predecessor left. The caller has the lock."""
        for table in self.catalog:
            table.create()
            table.sweep()
        self.ledger.load()

    def events(self, segments: Iterable[Segment]) -> DataFrame:
        paths = [str(self.lake / each.name) for each in segments]
        if not paths:
            return nothing(self.spark, EVENTS_SCHEMA)
        return self.spark.read.schema(EVENTS_SCHEMA).parquet(*paths)

    def terms(self) -> Terms:
        """As the server was told last, by whatever client (qless' `config.set`)."""
        told: dict[str, tuple[int, float | None]] = {}
        for row in self._told():
            seq, _ = told.get(row["why"], (-1, None))
            if row["seq"] > seq:
                told[row["why"]] = (row["seq"], _number(row["detail"]))
        default = Terms()
        stats, histogram = (told.get(name, (0, None))[1] for name in (STATS_HISTORY, HISTOGRAM_HISTORY))
        return Terms(
            default.stats if stats is None else stats,
            default.histogram if histogram is None else histogram,
            self._keep_days,
        )

    def _told(self) -> list[dict[str, Any]]:
        links = self.catalog["links"]
        dataset = links.dataset(links.files())
        if dataset is None:
            return []
        configured = pc.field("event") == "configured"
        rows: list[dict[str, Any]] = dataset.to_table(columns=["seq", "why", "detail"], filter=configured).to_pylist()
        return rows


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def day(date: dt.date, days: float) -> dt.date:
    """So many days before; never before the first date there is."""
    whole = min(int(days), (date - dt.date.min).days) if days < float("inf") else (date - dt.date.min).days
    return date - dt.timedelta(days=whole)
