"""`readStream.format("crossdock")`: events as the lake commits them. An offset is its last batch of the journal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from crossdock.lake.event_rows.tables import date_named
from crossdock.lake.manifest import Done, read_done
from crossdock.lake.segments import Segment
from crossdock.pipeline.source.history import HistoryLost, batches, segments, tasks
from crossdock.pipeline.source.options import Reading

_BATCH: Final = "batch"
_DATE: Final = "date"  #: of the newest event up to there: what the lake has let go of since was not read
_LAKE: Final = "lake"  #: its name

Offset = dict[str, Any]


class Events(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Each range of batches is committed to the lake whole, so no offset ever cuts a segment."""

    def __init__(self, options: Reading) -> None:
        self._options = options
        self._lake = Path(options.lake)
        self._known: dict[Path, Segment] = {}
        self._end: Offset | None = None  #: where it stops; None: it goes on

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Without this Spark would take all there is as one batch, whatever `rows` says."""
        self._end = _up_to(read_done(self._lake))

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's names, here and below)
        self._segments()  # tells what is wrong before anything is read
        done = read_done(self._lake)
        if done is None or self._options.starting == "latest":
            return _up_to(done)
        return {_BATCH: done.first - 1, _DATE: "", _LAKE: done.lake}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows) if self._options.rows else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        done = self._done(start)  # raises, wherever it is to stop
        end = self._end or _up_to(done)
        if start[_BATCH] >= end[_BATCH]:
            return start
        if isinstance(limit, ReadMaxRows):
            rows = 0
            for last, more, day in self._ranges(start[_BATCH], end[_BATCH]):
                rows += more
                if rows >= limit.max_rows:
                    return {_BATCH: last, _DATE: day, _LAKE: end[_LAKE]}
        return end

    def _done(self, offset: Offset) -> Done | None:
        """How far the lake is; at least as far as that offset, which was made of it."""
        done = read_done(self._lake)
        last, name = (0, "") if done is None else (done.last, done.lake)
        if last < offset[_BATCH] or offset[_LAKE] not in ("", name):
            raise HistoryLost(
                f"the checkpoint has read up to batch {offset[_BATCH]}, and the lake in {self._lake} ends with {last}: "
                "it is another one, or an old copy; name the right one, or begin with a new checkpoint"
            )
        return done

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        if start[_BATCH] >= end[_BATCH]:
            return []
        done = self._done(end)
        expired = "" if done is None else done.expired
        if start[_DATE] and start[_DATE] <= expired and self._options.lost == "fail":
            raise HistoryLost(
                f"events of {start[_DATE]} to {expired} were let go (lake.keep_days) before this stream had read them "
                'all; say .option("lost", "skip") to go on without them'
            )
        return tasks(each for each in self._segments() if start[_BATCH] < each.first and each.last <= end[_BATCH])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition.value)

    def _segments(self) -> list[Segment]:
        found = segments(self._lake, strict=self._options.lost == "fail", known=self._known)
        self._known = {each.path: each for each in found}
        return found

    def _ranges(self, after: int, until: int) -> list[tuple[int, int, str]]:
        """The last batch of each range, its rows and its newest date."""
        found: dict[int, tuple[int, str]] = {}
        for each in self._segments():
            if after < each.first and each.last <= until:
                rows, day = found.get(each.last, (0, ""))
                found[each.last] = (rows + each.rows, max(day, each.date))
        return [(last, rows, day) for last, (rows, day) in sorted(found.items())]

    def __getstate__(self) -> dict[str, Any]:
        """Tasks need no more than the options."""
        return {"_options": self._options, "_lake": self._lake, "_known": {}, "_end": None}


def _up_to(done: Done | None) -> Offset:
    if done is None:  # there is no lake yet
        return {_BATCH: 0, _DATE: "", _LAKE: ""}
    return {_BATCH: done.last, _DATE: date_named(int(done.at // 86_400)).isoformat(), _LAKE: done.lake}
