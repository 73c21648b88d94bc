"""Small frames of events: a few columns each, the rest null."""

from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from crossdock.lake.schema import EVENTS
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

#: 2026-11-15T18:00:00Z
SIX = 1_794_765_600.0
DAY, HOUR = 86_400.0, 3_600.0


def events(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    whole = []
    for index, row in enumerate(rows):
        assert set(row) <= set(EVENTS.names), set(row) - set(EVENTS.names)
        whole.append({"seq": index, "flush_epoch": 0, "at": SIX, "kind": "k", "server": "one", **row})
    return spark.createDataFrame(pa.Table.from_pylist(whole, schema=EVENTS), EVENTS_SCHEMA)


def told(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """These columns of all rows, sorted; a time as seconds since 1970."""
    rows = [tuple(map(_plain, row)) for row in frame.select(*columns).collect()]
    return sorted(rows, key=str)


def _plain(value: Any) -> Any:
    return value.timestamp() if isinstance(value, datetime) else value
