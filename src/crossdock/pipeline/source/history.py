"""Reads history: the lake's committed files, with Spark's Parquet reader or with the Python data source.

Spark's reader is three to four times as fast, so batch jobs should use `history`. The Python source is for SQL and for
tools that support only formats.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import DateType, StructField, StructType

from crossdock.lake.location import folder
from crossdock.lake.schema import EVENTS, PARTITION, SEQ_SHIFT
from crossdock.lake.store import store_of
from crossdock.lake.table import Lake, LakeFile, expect
from crossdock.lake.verify import missing
from crossdock.pipeline.environment import expect_plain, spark_path
from crossdock.pipeline.source.filters import PushedFilters
from crossdock.pipeline.source.lake_range import HistoryLost
from crossdock.pipeline.source.options import Reading
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

HISTORY_SCHEMA: Final = StructType([*EVENTS_SCHEMA.fields, StructField(PARTITION, DateType())])
#: Spark requires that any column may be null.
_STORED: Final = pa.schema([(field.name, field.type) for field in EVENTS])
_ARROW: Final = _STORED.append(pa.field(PARTITION, pa.date32()))
_BATCH_ROWS: Final = 10_000

#: Approximate rows of one task. Small segments are combined.
_TASK_ROWS: Final = 500_000


class Task(NamedTuple):
    """What one task reads."""

    files: list[tuple[str, str]]  #: path in the lake, and date
    within: tuple[int, int] | None  #: only rows after the first journal entry, up to the second; None: all


def history(spark: SparkSession, lake: Path | str) -> DataFrame:
    """All committed events, with `date`, read by Spark's Parquet reader. A filter on `date` selects files.

    Raises NoLake, Damaged, or HistoryLost if files are missing.
    """
    found = _opened(lake)
    files = found.files()
    if not files:
        return spark.createDataFrame([], HISTORY_SCHEMA)
    if found.store.root is not None:
        expect_whole(found, files)
    paths = [spark_path(found.uri(file)) for file in files]
    reader = spark.read.schema(HISTORY_SCHEMA).option("mergeSchema", "false")
    # A copy of a lake may be in a folder named date=... itself.
    return reader.option("basePath", spark_path(found.location)).parquet(*paths)


def _opened(location: Path | str) -> Lake:
    root = folder(location)
    if root is not None:
        expect_plain(root)
    expect(location)
    return Lake.open(location)


def expect_whole(lake: Lake, files: list[LakeFile]) -> None:
    """Raises HistoryLost if a file is missing or has another size."""
    for why in missing(lake, files):
        raise HistoryLost(f"the lake in {lake.location} is incomplete: {why}")


def tasks(chosen: Iterable[LakeFile], within: tuple[int, int] | None = None) -> list[InputPartition]:
    """Group files into tasks."""
    made: list[Task] = []
    rows = _TASK_ROWS
    for each in chosen:
        if rows + each.rows > _TASK_ROWS:
            made.append(Task([], within))
            rows = 0
        made[-1].files.append((each.path, each.date))
        rows += each.rows
    return [InputPartition(each) for each in made]


def batches(options: Reading, task: Task, where: ds.Expression | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a task. Columns that a file does not have are null. Raises HistoryLost if a file is missing."""
    if task.within is not None:
        first, last = ((entry + 1) << SEQ_SHIFT for entry in task.within)
        seq = pc.field("seq")
        inside = (seq >= first) & (seq < last)
        where = inside if where is None else where & inside
    store = store_of(options.lake)
    for path, day in task.files:
        name, system = store.path(path)
        try:
            dataset = ds.dataset(name, schema=_STORED, format="parquet", filesystem=system)
            read = dataset.to_batches(batch_size=_BATCH_ROWS, filter=where)
        except OSError as error:
            if options.lost == "skip":
                continue
            raise HistoryLost(
                f"the lake in {options.lake} is incomplete: {path} cannot be read: {error}; restore it from a copy of "
                'the lake, or set .option("lost", "skip") to continue without it'
            ) from error
        for batch in read:
            if batch.num_rows:
                dates = pa.repeat(pa.scalar(date.fromisoformat(day), pa.date32()), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*batch.columns, dates], schema=_ARROW)


class History(DataSourceReader):
    def __init__(self, options: Reading) -> None:
        self._options = options
        self._filters = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 (Spark's name)
        return self._filters.push(filters, _ARROW.names)

    def partitions(self) -> list[InputPartition]:
        lake = _opened(self._options.lake)
        chosen = [each for each in lake.files() if self._filters.selects(date.fromisoformat(each.date))]
        return tasks(chosen) or [InputPartition(Task([], None))]  # without one, Spark creates one without a value

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(self._options, partition.value, self._filters.rows)
