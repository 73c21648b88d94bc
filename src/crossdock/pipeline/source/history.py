"""History: the lake's committed segments, through Spark's own Parquet reader, or through the Python source.

Spark's own is three to four times as fast: `history` is what a batch should use. The Python one needs no list of files
from anybody, and the stream's offsets are the lake's own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import DateType, StructField, StructType

from crossdock.lake.manifest import expect
from crossdock.lake.schema import EVENTS, PARTITION
from crossdock.lake.segments import Segment, look
from crossdock.pipeline.environment import expect_plain
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.source.options import Reading
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

HISTORY_SCHEMA: Final = StructType([*EVENTS_SCHEMA.fields, StructField(PARTITION, DateType())])
#: As Spark wants it: any column may be null.
_STORED: Final = pa.schema([(field.name, field.type) for field in EVENTS])
_ARROW: Final = _STORED.append(pa.field(PARTITION, pa.date32()))
_BATCH_ROWS: Final = 10_000

#: Rows of one task, about: many segments of a quiet server are one.
_TASK_ROWS: Final = 500_000

_COMPARE: Final = {
    EqualTo: pc.equal, GreaterThan: pc.greater, GreaterThanOrEqual: pc.greater_equal, LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}  # fmt: skip
_SCALARS: Final = frozenset({str, int, float, bool, date})


class HistoryLost(PipelineError):
    """Segments that were to be read are not there, or not whole."""


def history(spark: SparkSession, lake: Path | str) -> DataFrame:
    """All committed events, with `date`, by Spark's own reader. Raises HistoryLost if some are missing."""
    folder = Path(lake).absolute()
    expect_plain(folder)
    paths = [str(each.path) for each in segments(folder, strict=True)]
    if not paths:
        return spark.createDataFrame([], HISTORY_SCHEMA)
    frame = spark.read.schema(EVENTS_SCHEMA).option("mergeSchema", "false").parquet(*paths)
    # The last folder's: a copy of a lake may be in one that is named alike.
    return frame.withColumn(PARTITION, F.to_date(F.regexp_extract(F.input_file_name(), r"date=([0-9-]+)/[^/]+$", 1)))


def segments(lake: Path, *, strict: bool, known: Mapping[Path, Segment] | None = None) -> list[Segment]:
    """Those that count, in the order of their batches. Raises NoLake, HistoryLost or Damaged."""
    expect(lake)
    found = look(lake, known)
    if strict and found.missing:
        raise HistoryLost(f"the lake in {lake} is not whole: {found.missing[0]}")
    return found.segments


def tasks(chosen: Iterable[Segment]) -> list[InputPartition]:
    """Paths and dates of the segments that one task reads."""
    made: list[list[tuple[str, str]]] = []
    rows = _TASK_ROWS
    for each in chosen:
        if rows + each.rows > _TASK_ROWS:
            made.append([])
            rows = 0
        made[-1].append((str(each.path), each.date))
        rows += each.rows
    return [InputPartition(each) for each in made]


def batches(files: Sequence[tuple[str, str]], where: ds.Expression | None = None) -> Iterator[pa.RecordBatch]:
    """Their rows; columns that an older segment does not have are null."""
    for path, day in files:
        dataset = ds.dataset(path, schema=_STORED, format="parquet")
        for batch in dataset.to_batches(batch_size=_BATCH_ROWS, filter=where):
            if batch.num_rows:
                dates = pa.repeat(pa.scalar(date.fromisoformat(day), pa.date32()), batch.num_rows)
                yield pa.RecordBatch.from_arrays([*batch.columns, dates], schema=_ARROW)


class History(DataSourceReader):
    def __init__(self, options: Reading) -> None:
        self._options = options
        self._dates: list[Filter] = []
        self._filters: list[Filter] = []

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 (Spark's name)
        """Comparisons with a constant: of `date` they choose files, of other columns pages and rows."""
        for each in filters:
            if not _can(each):
                yield each
            elif each.attribute == (PARTITION,):  # type: ignore[attr-defined]
                self._dates.append(each)
            else:
                self._filters.append(each)

    def partitions(self) -> list[InputPartition]:
        found = segments(Path(self._options.lake), strict=self._options.lost == "fail")
        chosen = tasks(each for each in found if all(_holds(rule, each.date) for rule in self._dates))
        return chosen or [InputPartition([])]  # of none at all Spark makes one that names nothing

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        where = None
        for each in self._filters:
            where = _expression(each) if where is None else where & _expression(each)
        return batches(partition.value, where)


def _can(rule: Any) -> bool:
    if type(rule) not in _COMPARE and type(rule) is not In:
        return False
    if len(rule.attribute) != 1 or rule.attribute[0] not in _ARROW.names:
        return False
    return all(type(value) in _SCALARS for value in (rule.value if type(rule) is In else (rule.value,)))


def _expression(rule: Any) -> ds.Expression:
    field = pc.field(rule.attribute[0])
    return field.isin(list(rule.value)) if type(rule) is In else _COMPARE[type(rule)](field, pa.scalar(rule.value))


def _holds(rule: Any, day: str) -> bool:
    found = date.fromisoformat(day)
    if type(rule) is In:
        return found in rule.value
    return bool(_COMPARE[type(rule)](pa.scalar(found), pa.scalar(rule.value)).as_py())
