"""Reads the newest version of one of the pipeline's tables: `option("what", "table")`.

This is what a persistent Spark catalog can name (spark_catalog.py): the catalog stores options, and every query reads
the version that is the newest then. `spark_tables.read_table` is faster for large tables, but lasts for one session.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from crossdock.lake.schema import PARTITION
from crossdock.lake.store import store_of
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.source.filters import PushedFilters
from crossdock.pipeline.source.options import BadOption, Reading
from crossdock.pipeline.spark_tables import spark_schema
from crossdock.pipeline.tables import File, Table

_BATCH_ROWS: Final = 10_000

#: Approximate rows of one task. Small files are combined.
_TASK_ROWS: Final = 500_000


class Task(NamedTuple):
    """What one task reads."""

    files: list[File]


def schema_of(options: Reading) -> StructType:
    """Raises BadOption if there is no table of this name."""
    return spark_schema(_table(options).schema)


class TableRows(DataSourceReader):
    """`schema` is that of the catalog, which an older release may have written. Columns are selected by it."""

    def __init__(self, options: Reading, schema: StructType) -> None:
        self._options = options
        self._names = schema.names
        self._filters = PushedFilters()

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802 (Spark's name)
        return self._filters.push(filters, self._names)

    def partitions(self) -> list[InputPartition]:
        table = _table(self._options)
        made: list[Task] = []
        rows = _TASK_ROWS
        for file in table.files(handle=table.handle()):
            if self._filters.selects(file.date):
                if rows + file.rows > _TASK_ROWS:
                    made.append(Task([]))
                    rows = 0
                made[-1].files.append(file)
                rows += file.rows
        return [InputPartition(task) for task in made or [Task([])]]  # without one, Spark creates one without a value

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        table = _table(self._options)
        # Spark requires that any column may be null.
        wanted = pa.schema([(name, table.schema.arrow.field(name).type) for name in self._names])
        stored = pa.schema([field for field in wanted if field.name != PARTITION])
        store, task = store_of(table.location), partition.value
        for file in task.files:
            name, system = store.path(file.path)
            dataset = ds.dataset(name, schema=stored, format="parquet", filesystem=system)
            for batch in dataset.to_batches(batch_size=_BATCH_ROWS, filter=self._filters.rows):
                if batch.num_rows:
                    dates = pa.repeat(pa.scalar(file.date, pa.date32()), batch.num_rows)
                    columns = [dates if each == PARTITION else batch.column(each) for each in self._names]
                    yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _table(options: Reading) -> Table:
    tables = Tables(options.tables)
    if options.table not in tables:
        names = ", ".join(table.name for table in tables)
        raise BadOption(f"option table = {options.table!r} is not allowed; it must be one of {names}")
    return tables[options.table]
