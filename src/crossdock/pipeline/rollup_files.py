"""Computes the rollups of a batch and writes their files.

The driver collects the rollups if they have few rows. A large batch with thousands of queues has nearly as many rows of
rollups as events, more than a driver can hold, so the executors write its files and return their names. Files of tasks
that failed or ran twice are not returned, and no table names them.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.planning import SourceFile
from crossdock.pipeline.schemas.appended import COUNTS_DAY, COUNTS_HOUR, ROLLUPS
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.segment_checks import opened
from crossdock.pipeline.tables import rows_of
from crossdock.pipeline.transforms.rollups import ROLLUP, rollups

#: Events of a batch whose rollups the driver collects in any case: up to 250 bytes each. Starting Python on the
#: executors would cost more than such a batch.
COLLECTED: Final = 500_000

#: Rows of rollups of a larger batch that the driver collects.
_COLLECTED_ROWS: Final = 1_000_000

#: Rows of rollups for each queue, kind and day, if it has many events: the buckets of its distributions.
_ROWS_A_KIND: Final = 300

#: Rows that a task of an executor collects for one file.
_FILE_ROWS: Final = 1_000_000

_RETURNED: Final = "name string, path string, rows long, events long, ended long"


class RollupFiles(NamedTuple):
    files: dict[str, list[AddAction]]  #: by table
    events: int  #: that the rollups count
    ended: int  #: leases that the rollups count as ended


def write_rollups(
    tables: Tables, events: DataFrame, files: Sequence[SourceFile], wanted: Collection[TableSchema]
) -> RollupFiles:
    """Write the rollups of the events in these files of lakes to files of the tables in `wanted`. Raises
    PipelineError."""
    names = [schema.name for schema in ROLLUPS if schema in wanted]
    if sum(file.rows for file in files) <= COLLECTED or _estimated_rows(files) <= _COLLECTED_ROWS:
        return _from_driver(tables, rollups(events).toArrow(), names)
    return _from_executors(tables, rollups(events), names)


def _estimated_rows(files: Sequence[SourceFile]) -> int:
    """How many rows the rollups may have, by the queues and kinds in the largest file."""
    largest = max(files, key=lambda file: file.rows)
    with opened(largest.uri) as source:
        rows = pq.ParquetFile(source).read(["queue", "kind"])
    days = {file.uri.rsplit("/", 2)[-2] for file in files}
    kinds: int = rows.group_by(["queue", "kind"]).aggregate([]).num_rows
    return kinds * len(days) * _ROWS_A_KIND


def _from_driver(tables: Tables, whole: pa.Table, names: list[str]) -> RollupFiles:
    files = {schema.name: tables[schema.name].write(_part(whole, schema)) for schema in ROLLUPS if schema.name in names}
    return RollupFiles(files, *_counted(whole))


def _from_executors(tables: Tables, whole: DataFrame, names: list[str]) -> RollupFiles:
    location = tables.location

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _written(location, names, batches)

    found = whole.mapInArrow(write, _RETURNED).collect()
    files: dict[str, list[AddAction]] = {}
    for name in names:
        paths = {row.path: row.rows for row in found if row.name == name and row.path}
        files[name] = tables[name].named(list(paths))
        if rows_of(files[name]) != sum(paths.values()):
            raise PipelineError(
                f"Spark wrote {sum(paths.values()):,} rows to {tables[name].location}, and {rows_of(files[name]):,} of "
                "them are visible here: the folder must be the same storage on this machine and on Spark's executors; "
                "nothing was committed"
            )
    return RollupFiles(files, sum(row.events for row in found), sum(row.ended for row in found))


def _written(location: str, names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of one task, on an executor."""
    tables, held, rows = Tables(location), list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= _FILE_ROWS:
            yield _write(tables, names, pa.Table.from_batches(held))
            held, rows = [], 0
    if held:
        yield _write(tables, names, pa.Table.from_batches(held))


def _write(tables: Tables, names: list[str], whole: pa.Table) -> pa.RecordBatch:
    made: list[tuple[str, str, int, int, int]] = []
    for schema in ROLLUPS:
        part = whole.filter(pc.equal(whole.column(ROLLUP), schema.name))
        if not part.num_rows:
            continue
        written = tables[schema.name].write(_cast(part, schema)) if schema.name in names else []
        made += [(schema.name, action.path, rows_of([action]), 0, 0) for action in written]
        made.append((schema.name, "", 0, *_counted(part)))
    columns = zip(*made, strict=True) if made else ([], [], [], [], [])
    kinds = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.int64())
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)],
        ["name", "path", "rows", "events", "ended"],
    )


def _counted(whole: pa.Table) -> tuple[int, int]:
    """The events and the ended leases that these rows count."""
    hours = whole.filter(pc.equal(whole.column(ROLLUP), COUNTS_HOUR.name))
    days = whole.filter(pc.equal(whole.column(ROLLUP), COUNTS_DAY.name))
    ended = days.filter(pc.is_valid(days.column("outcome")))
    return pc.sum(hours.column("n")).as_py() or 0, pc.sum(ended.column("n")).as_py() or 0


def _part(whole: pa.Table, schema: TableSchema) -> pa.Table:
    return _cast(whole.filter(pc.equal(whole.column(ROLLUP), schema.name)), schema)


def _cast(rows: pa.Table, schema: TableSchema) -> pa.Table:
    return rows.select(schema.names).cast(schema.arrow)
