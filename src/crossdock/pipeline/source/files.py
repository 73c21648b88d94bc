"""`readStream.format("crossdock").option("what", "files")`: streams the names of the lake's new files.

The driver reads the names from the lake's log, so executors need neither Python nor Crossdock. Offsets are positions in
the lake (lake_range.py). With the trigger `availableNow` the end is fixed when the query starts.

Spark starts several Python processes for a source, and most of them never open a lake. So what is slow to import is
imported where it is used.
"""

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType

from crossdock.pipeline.source.lake_range import (
    Offset,
    Position,
    beginning,
    check,
    files_between,
    limited,
    newest,
    refuse_lost,
)
from crossdock.pipeline.source.options import Reading

if TYPE_CHECKING:
    from crossdock.lake.table import Lake, LakeFile

FILES_SCHEMA: Final = StructType(
    [
        StructField("lake", StringType()),  # id
        StructField("version", LongType()),  # that added the file
        StructField("uri", StringType()),
        StructField("first", LongType()),  # journal entries
        StructField("last", LongType()),
        StructField("rows", LongType()),
        StructField("bytes", LongType()),
        StructField("date", DateType()),
    ]
)


class Following(SupportsTriggerAvailableNow):
    """The positions of a stream."""

    def __init__(self, options: Reading) -> None:
        self._options = options
        self._end: Position | None = None  #: where the stream stops; None: it continues

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Without this method Spark would read everything in one micro-batch and ignore `rows`."""
        self._end = newest(self._lake())

    def _lake(self) -> "Lake":
        from crossdock.lake.table import Lake

        return Lake.open(self._options.lake)

    def _initial(self) -> Position:
        lake = self._lake()
        return newest(lake) if self._options.starting == "latest" else beginning(lake, self._options.after)

    def _next(self, lake: "Lake", start: Position, rows: int) -> Position:
        """The end of the next micro-batch; `start` if there is nothing new. `rows`: its size; 0: no limit."""
        check(lake, start)
        end = newest(lake)
        if self._end is not None and (self._end.version, self._end.entry) < (end.version, end.entry):
            end = self._end
        if end.entry <= start.entry:  # versions that merge files or delete dates have no new events
            return start
        return limited(lake, start, end, rows) if rows else end

    def _between(self, lake: "Lake", start: Position, end: Position) -> "list[LakeFile]":
        check(lake, end)
        files = files_between(lake, start, end)
        if self._options.lost == "fail" and start.entry < end.entry:
            refuse_lost(lake, start, files)
        return files


class Files(Following, SimpleDataSourceStreamReader):
    """Streams the names of files. The driver reads the log, so no worker is needed."""

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's names, here and below)
        return self._initial().offset

    def read(self, start: Offset) -> tuple[Iterator[tuple[Any, ...]], Offset]:
        lake, first = self._lake(), Position.of(start)
        last = self._next(lake, first, self._options.rows)
        return iter(self._rows(lake, first, last)), last.offset

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple[Any, ...]]:  # noqa: N802
        return iter(self._rows(self._lake(), Position.of(start), Position.of(end)))

    def _rows(self, lake: "Lake", start: Position, end: Position) -> list[tuple[Any, ...]]:
        return [
            (
                lake.id, file.version or end.version, lake.uri(file), file.first, file.last, file.rows, file.bytes,
                date.fromisoformat(file.date),
            )
            for file in self._between(lake, start, end)
        ]  # fmt: skip
