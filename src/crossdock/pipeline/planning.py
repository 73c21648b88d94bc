"""Plans the next batch: the files of the lakes that are not in the tables yet.

Normally all tables have the same position of a lake, and a batch leads from there to a newer version. After a crash
some tables lack the newest batch. They get exactly that batch first, so that all tables agree again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crossdock.lake.table import Lake, LakeFile
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.lakes import skipped_paths
from crossdock.pipeline.schemas import ROLLUPS, ROW_LEVEL
from crossdock.pipeline.tables import Position


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


def batch(tables: Tables, lakes: Sequence[Lake], upto: Mapping[str, int] | None = None) -> Planned | None:
    """The next batch: everything after the tables' positions, up to these versions of these lakes, or all that they
    have. None: there is nothing."""
    ranges = []
    for lake in lakes:
        after = _expect_reached(lake, max(positions(tables, lake.id).values()))
        version = lake.version if upto is None else min(lake.version, upto.get(lake.id, after.version))
        if version > after.version:
            files = _files(tables, lake, after, version)
            last = lake.last if version == lake.version else max((file.last for file in files), default=after.entry)
            ranges.append(_of(lake, after, Position(version, max(last, after.entry)), files))
    return Planned(ranges, None) if ranges else None


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
    return _of(lake, after, upto, _files(tables, lake, after, upto.version))


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
