"""The lakes whose events are in the tables, one per server, and the damaged files that an operator has left out."""

import datetime as dt
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from crossdock.lake.location import absolute
from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.tables import File, Table


class KnownLake(NamedTuple):
    id: str
    server: str
    location: str


def known_lakes(table: Table) -> list[KnownLake]:
    """In the order in which they were added."""
    rows = sorted(_rows(table).to_pylist(), key=lambda row: row["place"])
    return [KnownLake(row["id"], row["server"], row["location"]) for row in rows]


def add_lake(table: Table, location: str) -> tuple[Lake, bool]:
    """Open a lake and record it. Returns it, and whether it was not known before; a lake that moved is recorded with
    its new location. Raises PipelineError if another lake has the same server name."""
    lake = Lake.open(location)
    known = known_lakes(table)
    new = KnownLake(lake.id, lake.server, absolute(location))
    if new in known:
        return lake, False
    for each in known:
        if each.server == new.server and each.id != new.id:
            raise PipelineError(
                f"the tables already have a server named {each.server}, with the lake in {each.location}: give this "
                f"server another name (server.name) and a new lake (lake.dir), or name another folder for its tables"
            )
    kept = [each if each.id != new.id else new for each in known]
    handle = table.handle()
    replaced = table.files(handle=handle)
    _write(table, handle, kept if new in kept else [*known, new], replaced)
    return lake, all(each.id != new.id for each in known)


def skipped_paths(tables: Tables, lake: str) -> set[str]:
    """The files of a lake that are left out."""
    return {row["path"] for row in skipped_files(tables) if row["lake"] == lake}


def skipped_files(tables: Tables) -> list[dict[str, Any]]:
    """Rows of the table `skipped`, without the date."""
    rows: list[dict[str, Any]] = _rows(tables["skipped"]).to_pylist()
    return rows


def skip(tables: Tables, lake: Lake, path: str, reason: str) -> None:
    """Leave out a file of a lake. Raises PipelineError if the lake has no such file, or it is left out already."""
    found = [file for file in lake.files() if file.path == path]
    if not found:
        raise PipelineError(f"the lake in {lake.location} has no file {path}")
    if path in skipped_paths(tables, lake.id):
        raise PipelineError(f"{path} is left out already; crossdock pipeline run continues without it")
    table = tables["skipped"]
    row = {"date": dt.date.fromisoformat(found[0].date), "lake": lake.id, "path": path, "rows": found[0].rows}
    rows = pa.Table.from_pylist([{**row, "reason": reason}], schema=table.schema.arrow)
    table.commit(table.handle(), table.write(rows))


def use_again(tables: Tables, lake: str, paths: Collection[str]) -> None:
    """Forget that these files were left out."""
    if not paths:
        return
    table = tables["skipped"]
    handle = table.handle()
    old = table.files(handle=handle)
    kept = [row for row in _dated(table, old) if row["lake"] != lake or row["path"] not in paths]
    added = table.write(pa.Table.from_pylist(kept, schema=table.schema.arrow)) if kept else []
    table.commit(handle, added, replaced=old)


def _dated(table: Table, files: Iterable[File]) -> list[dict[str, Any]]:
    return [{**row, "date": file.date} for file in files for row in table.read(file).to_pylist()]


def _write(table: Table, handle: DeltaTable, lakes: list[KnownLake], replaced: list[File]) -> None:
    today = dt.datetime.now(dt.UTC).date()
    rows = [{"date": today, "place": place, **each._asdict()} for place, each in enumerate(lakes)]
    table.commit(handle, table.write(pa.Table.from_pylist(rows, schema=table.schema.arrow)), replaced=replaced)


def _rows(table: Table) -> pa.Table:
    parts = [table.read(file) for file in table.files()]
    return pa.concat_tables(parts) if parts else table.schema.arrow.empty_table()
