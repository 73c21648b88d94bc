"""The status of the tables and how far they are behind each lake, from the Delta logs. Needs no Spark."""

import datetime as dt

import msgspec

from crossdock.lake.location import is_url
from crossdock.lake.table import Lake, NoLake
from crossdock.model.errors import CrossdockError
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.lakes import KnownLake, known_lakes, skipped_files
from crossdock.pipeline.planning import waiting


class TableStatus(msgspec.Struct):
    name: str
    rows: int
    files: int
    bytes: int
    first: dt.date | None
    last: dt.date | None


class LakeStatus(msgspec.Struct):
    server: str
    location: str
    waiting: int = 0  #: files that are not in the tables
    waiting_rows: int = 0
    waiting_bytes: int = 0
    problem: str = ""  #: why the lake cannot be read


class SkippedFile(msgspec.Struct):
    server: str
    path: str
    rows: int
    reason: str


class Status(msgspec.Struct):
    lakes: list[LakeStatus]
    tables: list[TableStatus]
    skipped: list[SkippedFile]


def status(tables: Tables, lake: str) -> Status:
    """`lake`: the location of the server's own lake, which may not be in the tables yet."""
    known = known_lakes(tables["lakes"])
    own = [] if any(each.location == lake for each in known) else [KnownLake("", "", lake)]
    names = {each.id: each.server for each in known}
    skipped = [
        SkippedFile(names.get(row["lake"], row["lake"]), row["path"], row["rows"], row["reason"])
        for row in skipped_files(tables)
    ]
    return Status(
        [_lake(tables, each) for each in (*known, *own)], [_table(tables, each.name) for each in tables], skipped
    )


def _lake(tables: Tables, known: KnownLake) -> LakeStatus:
    try:
        lake = Lake.open(known.location)
        found = waiting(tables, [lake])
    except NoLake as error:
        # The server's own lake appears with its first events.
        problem = "" if not known.id and not is_url(known.location) else str(error)
        return LakeStatus(known.server, known.location, problem=problem)
    except CrossdockError as error:
        return LakeStatus(known.server, known.location, problem=str(error))
    return LakeStatus(lake.server, known.location, found.files, found.rows, found.bytes)


def _table(tables: Tables, name: str) -> TableStatus:
    files = tables[name].files()
    dates = [file.date for file in files]
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    return TableStatus(name, rows, len(files), size, min(dates, default=None), max(dates, default=None))
