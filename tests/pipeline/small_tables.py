"""Tables of a few events, in as many batches as a test needs."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.run import RunSettings, refresh_all
from crossdock.pipeline.schemas.appended import ROLLUPS
from crossdock.pipeline.transforms import rollups
from tests.pipeline.frames import events
from tests.pipeline.pictures import rows as rows_of


class Small:
    """Tables of a few events."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.tables = Tables(str(folder))
        self.tables.create()

    def add(self, *rows: dict[str, Any]) -> None:
        """Add one batch to the rollups and refresh the views."""
        whole = rollups.rollups(events(self._spark, *rows)).toArrow()
        for schema in ROLLUPS:
            table = self.tables[schema.name]
            mine = whole.filter(pc.equal(whole.column(rollups.ROLLUP), schema.name))
            mine = mine.select(schema.names).cast(schema.arrow)
            table.commit(table.handle(), table.write(mine))
        refresh_all(self.tables, RunSettings(), lambda what, done, of: None)

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        found = [tuple(_plain(row[column]) for column in columns) for row in rows_of(self._folder, name)]
        return sorted(found, key=str)


def _plain(value: Any) -> Any:
    """A time as seconds since 1970, and a float without the digits that depend on the order of sums."""
    if isinstance(value, dt.datetime):
        return value.timestamp()
    return round(value, 6) if isinstance(value, float) else value
