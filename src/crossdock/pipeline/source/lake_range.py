"""Positions in a lake, and the files between two of them. The streams (stream.py) use them as offsets.

A position is a version of the lake and a journal entry: everything up to both was read. The version finds new files in
the tail of the lake's log. The entry keeps the reading exact when files that were read are merged, or when the log no
longer has the versions: then all live files are looked at, and rows are selected by their entry.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from crossdock.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from crossdock.lake.table import Lake, LakeFile

_LAKE: Final = "lake"
_VERSION: Final = "version"
_ENTRY: Final = "entry"
_DATE: Final = "date"

_DAY_S: Final = 86_400

Offset = dict[str, Any]


class HistoryLost(PipelineError):
    """Events are missing from the lake."""


class Position(NamedTuple):
    lake: str  #: id
    version: int
    entry: int
    date: str  #: of the newest event up to here; empty: unknown

    @classmethod
    def of(cls, offset: Offset) -> "Position":
        return cls(offset[_LAKE], offset[_VERSION], offset[_ENTRY], offset[_DATE])

    @property
    def offset(self) -> Offset:
        return {_LAKE: self.lake, _VERSION: self.version, _ENTRY: self.entry, _DATE: self.date}


def beginning(lake: "Lake", after: int) -> Position:
    """After a version; -1: before all events."""
    return Position(lake.id, after, 0, "")


def newest(lake: "Lake") -> Position:
    from crossdock.lake.event_rows.tables import date_named

    return Position(lake.id, lake.version, lake.last, date_named(int(lake.at // _DAY_S)).isoformat())


def check(lake: "Lake", position: Position) -> None:
    """Raises HistoryLost unless the lake is the position's, and has reached it."""
    if lake.id != position.lake or lake.version < position.version or lake.last < position.entry:
        raise HistoryLost(
            f"the checkpoint is at version {position.version} of the lake {position.lake}, and {lake.location} has "
            f"version {lake.version} of {lake.id}: it is another lake or an old copy; name the right one, or start "
            "with a new checkpoint"
        )


def files_between(lake: "Lake", start: Position, end: Position) -> "list[LakeFile]":
    """Files that may have events after `start` and up to `end`, in the order of their entries."""
    if start.version >= end.version and start.entry >= end.entry:
        return []
    found = lake.added(start.version, max(end.version, start.version))
    # A file of another tool has no entries in its name.
    return [file for file in found if not 0 < file.last <= start.entry and file.first <= end.entry]


def is_exact(file: "LakeFile", start: Position, end: Position) -> bool:
    """Whether all events of the file are after `start` and up to `end`."""
    return start.entry < file.first and file.last <= end.entry


def limited(lake: "Lake", start: Position, end: Position, rows: int) -> Position:
    """The first position with at least that many events after `start`, at the end of a range of the exporter."""
    files = files_between(lake, start, end)
    if not all(file.version and file.first for file in files):  # their order of versions is unknown
        return end
    total, date = 0, start.date
    for index, file in enumerate(files):
        total, date = total + file.rows, max(date, file.date)
        following = files[index + 1].version if index + 1 < len(files) else None
        if total >= rows and following is not None and following != file.version:
            return Position(lake.id, file.version, file.last, date)
    return end


def refuse_lost(lake: "Lake", start: Position, files: "Iterable[LakeFile]") -> None:
    """Raises HistoryLost if dates were deleted before `start` had read them."""
    if not start.date or start.date > lake.expired:
        return
    first = min((file.first for file in files if file.first), default=lake.last + 1)
    if first > start.entry + 1:
        raise HistoryLost(
            f"events of {start.date} to {lake.expired} were deleted (lake.keep_days) before this stream had read all "
            'of them; set .option("lost", "skip") to continue without them'
        )
