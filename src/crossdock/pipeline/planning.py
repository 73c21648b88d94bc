"""Plans the next batch: the files of the lakes that are not in the tables yet.

Normally all tables have the same position of a lake, and a batch leads from there to a newer version. After a crash
some tables lack the newest batch. They get exactly that batch first, so that all tables agree again.

The size of a batch is bounded. It ends where a segment of the exporter ends. If the log no longer has the versions that
added the files, a batch ends at a journal entry, and its position keeps the version of the one before.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from crossdock.lake.table import Lake, LakeFile
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.lakes import skipped_paths
from crossdock.pipeline.schemas.appended import COUNTS_HOUR, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.tables import Position

#: Events per batch, approximately, which limits the driver's memory and what is repeated after a crash.
BATCH_ROWS: Final = 5_000_000


class SourceFile(NamedTuple):
    """A file of a lake."""

    uri: str
    rows: int
    first: int  #: journal entries
    last: int
    linked: bool  #: it may have rows for `links`


class Range(NamedTuple):
    """Events of one lake: after one position, up to another."""

    lake: str
    after: Position
    upto: Position
    files: Sequence[SourceFile]

    @property
    def is_exact(self) -> bool:
        """Whether the files have no events outside of the range."""
        return all(self.after.entry < file.first and file.last <= self.upto.entry for file in self.files)


class Planned(NamedTuple):
    ranges: list[Range]
    only: frozenset[str] | None  #: tables that lack these ranges; None: all


class Waiting(NamedTuple):
    """What is in the lakes and not in the tables."""

    files: int
    rows: int
    bytes: int


class Lost(NamedTuple):
    """Events that a lake deleted before they were in the tables."""

    server: str
    first: dt.date | None  #: some of this date may be in the tables; None: the tables have no event of the server
    last: dt.date
    entries: int  #: of the journal

    def __str__(self) -> str:
        dates = f"of {self.first} to {self.last}" if self.first not in (None, self.last) else f"up to {self.last}"
        many = f"{self.entries:,} journal {'entry' if self.entries == 1 else 'entries'}"
        return (
            f"events of {self.server} are missing from the tables: the lake deleted those {dates}, {many}, before the "
            "pipeline read them. Run the pipeline more often, or raise lake.keep_days"
        )


def positions(tables: Tables, lake: str) -> dict[str, Position]:
    """The position of each table that is made from events."""
    return {schema.name: tables[schema.name].position(lake) for schema in (*ROW_LEVEL, *ROLLUPS)}


def repairs(tables: Tables, lakes: Sequence[Lake]) -> Iterator[Planned]:
    """What tables lack of a batch that others have."""
    for lake in lakes:
        found = positions(tables, lake.id)
        top = _expect_reached(lake, max(found.values()))
        for low in sorted(set(found.values()) - {top}):
            lacking = frozenset(name for name, position in found.items() if position == low)
            yield Planned([_range(tables, lake, low, top)], lacking)


def batch(
    tables: Tables, lakes: Sequence[Lake], upto: Mapping[str, int] | None = None, rows: int = BATCH_ROWS
) -> Planned | None:
    """The next batch: about this many events after the tables' positions, up to these versions of these lakes, or all
    that they have. None: there is nothing."""
    ranges: list[Range] = []
    for lake in lakes:
        after = _expect_reached(lake, max(positions(tables, lake.id).values()))
        version = lake.version if upto is None else min(lake.version, upto.get(lake.id, after.version))
        if version > after.version and rows > 0:
            files = _files(tables, lake, after, version)
            last = lake.last if version == lake.version else max((file.last for file in files), default=after.entry)
            end = _end(files, after, Position(version, max(last, after.entry)), rows)
            ranges.append(_of(lake, after, end, files))
            rows -= sum(file.rows for file in ranges[-1].files)
    return Planned(ranges, None) if ranges else None


def _end(files: Sequence[LakeFile], after: Position, last: Position, rows: int) -> Position:
    """Where a batch of about this many events ends, at `last` at the latest."""
    if not all(file.first for file in files):  # another tool wrote one, and its journal entries are unknown
        return last
    ordered, total = sorted(files, key=lambda file: (file.last, file.first)), 0
    for index, file in enumerate(ordered[:-1]):
        total += file.rows
        if total < rows or ordered[index + 1].last == file.last:
            continue
        rest = ordered[index + 1 :]
        # A file on both sides is read twice. So such an end is chosen only if there is no better one for long.
        if total >= 2 * rows or min(each.first for each in rest) > file.last:
            version = max(each.version for each in ordered[: index + 1])
            in_order = all(0 < each.version <= version for each in ordered[: index + 1]) and all(
                each.version > version for each in rest
            )
            return Position(version if in_order else after.version, file.last)
    return last


def lost(tables: Tables, lakes: Sequence[Lake]) -> list[Lost]:
    """What the lakes have deleted (`lake.keep_days`) before the tables had it. Events of a server never go back in
    time, so nothing is lost if the tables have a later date."""
    found = []
    for lake in lakes:
        after = max(positions(tables, lake.id).values())
        if not lake.expired or lake.last <= after.entry:
            continue
        files = _files(tables, lake, after, lake.version)
        begin = max(after.entry + 1, lake.first)
        entries = min((file.first for file in files if file.first), default=lake.last + 1) - begin
        expired = dt.date.fromisoformat(lake.expired)
        newest = _newest_date(tables, lake.server) if entries > 0 else None
        if entries > 0 and (newest is None or newest <= expired):
            found.append(Lost(lake.server, newest, expired, entries))
    return found


def _newest_date(tables: Tables, server: str) -> dt.date | None:
    """The newest date of the tables that has events of a server."""
    table = tables[COUNTS_HOUR.name]
    files = table.files()
    for date in sorted({file.date for file in files}, reverse=True):
        if any(server in table.read(file, ["server"]).column("server").to_pylist()
               for file in files if file.date == date):  # fmt: skip
            return date
    return None


def waiting(tables: Tables, lakes: Sequence[Lake]) -> Waiting:
    """What a run would read, including what only some tables lack after a crash."""
    found: list[LakeFile] = []
    for lake in lakes:
        known = positions(tables, lake.id).values()
        _expect_reached(lake, max(known))
        found += _files(tables, lake, min(known), lake.version)
    return Waiting(len(found), sum(file.rows for file in found), sum(file.bytes for file in found))


def _expect_reached(lake: Lake, position: Position) -> Position:
    """Raises PipelineError if the lake has not reached the tables' position. It would add other events under the same
    numbers, and the tables would leave them out."""
    if lake.version < position.version or lake.last < position.entry:
        raise PipelineError(
            f"the tables have the lake of {lake.server} up to its version {position.version}, and {lake.location} has "
            f"version {lake.version}: it is an old copy. Name the right lake, or make all tables again from this one "
            "with crossdock pipeline rebuild"
        )
    return position


def _range(tables: Tables, lake: Lake, after: Position, upto: Position) -> Range:
    # Not only up to its version: a batch may end at a journal entry.
    return _of(lake, after, upto, _files(tables, lake, after, lake.version))


def _files(tables: Tables, lake: Lake, after: Position, version: int) -> list[LakeFile]:
    """Files that may have events of the range. Those of another tool have no range in their names."""
    skipped = skipped_paths(tables, lake.id)
    found = lake.added(after.version, version)
    return [file for file in found if not 0 < file.last <= after.entry and file.path not in skipped]


def _of(lake: Lake, after: Position, upto: Position, files: Sequence[LakeFile]) -> Range:
    made = [
        SourceFile(f"{lake.location}/{file.path}", file.rows, file.first, file.last, file.linked)
        for file in files
        if file.first <= upto.entry
    ]
    return Range(lake.id, after, upto, made)
