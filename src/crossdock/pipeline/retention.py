"""Deletes old rows of the tables and merges small files. Needs no Spark.

The operator's settings decide what is kept: `pipeline.keep_hourly_days` for the tables by hour, `lake.keep_days` of
each lake for the tables with a row per job. Tables by day are kept for ever. Files that were replaced or deleted stay
for another day (tables.KEEP_HOURS), for readers of an older version.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import QueryBuilder
from deltalake.transaction import AddAction

from crossdock.pipeline.catalog import Progress, Tables, no_progress
from crossdock.pipeline.schemas.appended import ATTEMPTS, COUNTS_DAY, COUNTS_HOUR, FAILURES_DAY, HIST_DAY, LINKS, WORK
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import FLOWS, FORECAST, HOURLY, WORKERS
from crossdock.pipeline.tables import MANY_FILES, File, Table
from crossdock.pipeline.views.queries import MERGED_HIST

#: Tables that are deleted after `pipeline.keep_hourly_days`. Views are first: tables by day that were computed from a
#: view's hours are not computed again when its sources are deleted.
BY_HOUR: Final = (FORECAST, WORKERS, HOURLY, COUNTS_HOUR, WORK)

#: Tables that have the rows of a server as long as its lake has the events.
BY_LAKE: Final = (FLOWS, ATTEMPTS, LINKS)

#: Files of row-level tables and views are small below this size, and are joined up to the other one.
_SMALL_BYTES: Final = 32 << 20
_JOINED_BYTES: Final = 128 << 20

#: Columns of a rollup that are not added up.
_LEAST: Final = ("first_at",)
_MOST: Final = ("last_at", "max")


def forget(tables: Tables, keep_hourly_days: int, expired: Mapping[str, dt.date], today: dt.date | None = None) -> None:
    """Delete what the settings no longer keep. `expired`: the last date that the lake of each server has deleted."""
    expire_hours(tables, today or dt.datetime.now(dt.UTC).date(), keep_hourly_days)
    expire_rows(tables, expired)


def expire_hours(tables: Tables, today: dt.date, keep_days: int) -> int:
    """Delete the dates of tables by hour that are more than this many days old; 0: none. Returns how many dates."""
    if not keep_days:
        return 0
    first = today - dt.timedelta(days=min(keep_days, (today - dt.date.min).days))
    gone = set()
    for schema in BY_HOUR:
        table = tables[schema.name]
        handle = table.handle()
        files = [file for file in table.files(handle=handle) if file.date < first]
        if files:
            table.commit(handle, [], replaced=files)
            gone |= {file.date for file in files}
    return len(gone)


def expire_rows(tables: Tables, expired: Mapping[str, dt.date]) -> int:
    """Delete the rows of each of these servers up to the date that its lake has deleted. Rows of other servers stay.
    Returns how many rows."""
    return sum(_expire(tables[schema.name], expired) for schema in BY_LAKE)


def _expire(table: Table, expired: Mapping[str, dt.date]) -> int:
    """A table notes up to where a server's rows are deleted, so that dates with rows of other servers are not read
    every time."""
    handle = table.handle()
    known = {server: table.expired(server, handle) for server in expired}
    due = {server: date for server, date in expired.items() if date > known[server]}
    if not due:
        return 0
    since, until = min(known[server] for server in due), max(due.values())
    files = [file for file in table.files(handle=handle) if since < file.date <= until]
    added: list[AddAction] = []
    replaced: list[File] = []
    count = 0
    for file in files:
        servers = pa.array([server for server, date in due.items() if file.date <= date], pa.string())
        is_expired = pc.is_in(table.read(file, ["server"]).column("server"), servers)
        rows = pc.sum(is_expired).as_py() or 0
        if rows:
            replaced.append(file)
            count += rows
            if rows < len(is_expired):
                added.append(table.joined([file], partial(_without, servers)))
    if files:  # a table without rows needs no note
        table.commit(handle, added, replaced=replaced, expired=due)
    return count


def _without(servers: pa.Array, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows.column("server"), servers)))


def merge_files(tables: Tables, progress: Progress = no_progress) -> int:
    """Merge the files of dates that have many. Returns how many dates of tables were merged. The views stay as they
    are: the log says that no rows changed."""
    merged, every = 0, list(tables)
    for done, table in enumerate(every):
        progress("merging files", done, len(every))
        merged += _merge(table)
    return merged


def _merge(table: Table) -> int:
    handle = table.open()
    if handle is None:
        return 0
    dates: dict[dt.date, list[File]] = {}
    for file in table.files(handle=handle):
        dates.setdefault(file.date, []).append(file)
    query = _MERGING.get(table.name)
    added: list[AddAction] = []
    replaced: list[File] = []
    merged = 0
    for date, files in sorted(dates.items()):
        if query is None:
            groups = _groups(files)
            added += [table.joined(group) for group in groups]
            replaced += [file for group in groups for file in group]
            merged += bool(groups)
        elif len(files) > MANY_FILES:
            engine = QueryBuilder().register(table.name, handle)
            rows = pa.table(engine.execute(query.format(dates=f"date = DATE '{date.isoformat()}'")).read_all())
            added += table.write(rows.select(table.schema.names).cast(table.schema.arrow))
            replaced += files
            merged += 1
    if merged:
        table.commit(handle, added, replaced=replaced, changes=False)
    return merged


def _groups(files: Sequence[File]) -> list[list[File]]:
    """Small files of one date that are joined, if there are many. Each group becomes one file of limited size."""
    small = [file for file in files if file.bytes < _SMALL_BYTES]
    if len(small) <= MANY_FILES:
        return []
    groups: list[list[File]] = [[]]
    for file in sorted(small, key=lambda file: (file.lowest or 0, file.path)):
        if sum(each.bytes for each in groups[-1]) + file.bytes > _JOINED_BYTES:
            groups.append([])
        groups[-1].append(file)
    return [group for group in groups if len(group) > 1]


def _added_up(schema: TableSchema) -> str:
    """A query that has one row per key of a rollup."""
    key = ", ".join(schema.key)
    columns = []
    for name in schema.names:
        if name not in schema.key:
            how = "min" if name in _LEAST else "max" if name in _MOST else "sum"
            columns.append(f"{how}({name}) AS {name}")
    return f"SELECT {key}, {', '.join(columns)} FROM {schema.name} WHERE {{dates}} GROUP BY {key}"


_CAUSES: Final = ", ".join(FAILURES_DAY.key)
#: The example is that of the first failure.
_FAILURES: Final = f"""
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY {_CAUSES} ORDER BY seq) AS place
    FROM failures_day WHERE {{dates}}
)
SELECT {_CAUSES}, sum(n) AS n, sum(deaths) AS deaths, min(first_at) AS first_at, max(last_at) AS last_at,
    min(seq) AS seq, max(CASE WHEN place = 1 THEN jid END) AS jid, max(CASE WHEN place = 1 THEN message END) AS message
FROM ranked GROUP BY {_CAUSES}
"""

#: How the rows of each rollup are merged. Files of other tables are only joined.
_MERGING: Final = {
    **{schema.name: _added_up(schema) for schema in (COUNTS_HOUR, COUNTS_DAY, WORK)},
    FAILURES_DAY.name: _FAILURES,
    HIST_DAY.name: f"WITH {MERGED_HIST} SELECT * FROM hist",
}
