"""`readStream.format("crossdock")`: streams events as the lake commits them. Executors read the files."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from crossdock.pipeline.source.files import Following
from crossdock.pipeline.source.history import batches, tasks
from crossdock.pipeline.source.lake_range import Offset, Position, is_exact


class Events(Following, DataSourceStreamReader):
    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's names, here and below)
        return self._initial().offset

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows) if self._options.rows else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else 0
        return self._next(self._lake(), Position.of(start), rows).offset

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        first, last = Position.of(start), Position.of(end)
        lake = self._lake()
        files = self._between(lake, first, last)
        within = None if all(is_exact(file, first, last) for file in files) else (first.entry, last.entry)
        return tasks(files, within)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(self._options, partition.value)
