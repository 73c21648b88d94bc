"""What every job of the pipeline works with: a session, the lake, and the tables."""

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from crossdock.lake import manifest
from crossdock.pipeline.catalog import Catalog
from crossdock.pipeline.delta import nothing
from crossdock.pipeline.ledger import Ledger
from crossdock.pipeline.segments import Segment
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

#: Told what is done, how much of it and of how much.
Progress = Callable[[str, int, int], None]


def unheard(what: str, done: int, of: int) -> None:
    pass


class PipelineContext:
    def __init__(self, spark: SparkSession, lake: Path, tables: Path, *, progress: Progress = unheard) -> None:
        self.spark = spark
        self.lake = lake.absolute()
        self.tables_folder = tables.absolute()
        self.catalog = Catalog(self.tables_folder)
        self.ledger = Ledger(self.tables_folder / "facts" / "segments")
        self.progress = progress

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

    @property
    def today(self) -> dt.date:
        """The newest date of the lake that is in the tables: the server's clock, which no caller's can put off."""
        dates = (manifest.date_of(each.name) for each in self.ledger.segments if not each.fault)
        return dt.date.fromisoformat(max(dates, default=dt.date.min.isoformat()))

    @property
    def expired(self) -> dt.date:
        """The lake let go of this date, and all before it (`lake.keep_days`)."""
        done = manifest.read_done(self.lake)
        return dt.date.fromisoformat(done.expired) if done is not None and done.expired else dt.date.min
