"""Quality checks of the tables. A run that breaks one of them fails, and says which.

* Counts reconcile: the events of a date in `counts_hour` are the rows that the lake has, and the attempts of a date are
  the ended leases in `counts_day`. Dates with deleted rows are left out.
* All tables have the same events.
* Keys are unique: a table has one row per key and date.
* No wait is negative, unless a client's clock decides (qless).
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.lakes import skipped_paths
from crossdock.pipeline.planning import positions
from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import VIEWS


def faults_of(
    tables: Tables, lakes: Sequence[Lake], dates: Collection[dt.date] | None = None, *, rows: bool = True
) -> list[str]:
    """Sentences, one per broken check, about these dates or all. `rows`: also check the keys of the row-level tables,
    which takes as long as reading them."""
    found = [*_positions(tables, lakes), *_lake_counts(tables, lakes, dates)]
    found += [*_attempts(tables, lakes, dates), *_negative(tables, dates)]
    for schema in (*VIEWS, *((ATTEMPTS, LINKS) if rows else ())):
        found += _keys(tables, schema, dates)
    return found


def _positions(tables: Tables, lakes: Sequence[Lake]) -> Iterator[str]:
    for lake in lakes:
        found = positions(tables, lake.id)
        behind = sorted(name for name, position in found.items() if position != max(found.values()))
        if behind:
            yield (
                f"the newest events of {lake.server} are not in {', '.join(behind)}: run `crossdock pipeline run`, "
                "which completes an interrupted batch"
            )


def _lake_counts(tables: Tables, lakes: Sequence[Lake], dates: Collection[dt.date] | None) -> Iterator[str]:
    """Only of lakes that are in the tables up to their newest version."""
    table = tables["counts_hour"]
    oldest = min((file.date for file in table.files()), default=dt.date.min)  # retention deletes older hours
    query = f"SELECT server, date, sum(n) AS n FROM counts_hour WHERE {_within(dates)} GROUP BY server, date"
    counted = {(row["server"], row["date"]): row["n"] for row in _rows(tables, query, "counts_hour")}
    for lake in lakes:
        if table.position(lake.id).version != lake.version:
            continue
        stored, skipped = Counter[dt.date](), skipped_paths(tables, lake.id)
        for file in lake.files():
            stored[dt.date.fromisoformat(file.date)] += 0 if file.path in skipped else file.rows
        known = {date for server, date in counted if server == lake.server and date.isoformat() > lake.expired}
        for date in sorted(known | stored.keys()):
            rows, there = stored[date], counted.get((lake.server, date), 0)
            if date >= oldest and (dates is None or date in dates) and there != rows:
                yield (
                    f"the lake of {lake.server} has {rows:,} events of {date}, and the tables count {there:,}: run "
                    "`crossdock pipeline rebuild`"
                )


def _attempts(tables: Tables, lakes: Sequence[Lake], dates: Collection[dt.date] | None) -> Iterator[str]:
    """Attempts are kept as long as the lake keeps its events, and the counts for ever."""
    expired = {lake.server: lake.expired for lake in lakes}
    within = f"{_within(dates)} GROUP BY server, date"
    counted, stored = (
        {(row["server"], row["date"]): row["n"] for row in _rows(tables, query, name)}
        for name, query in (
            ("counts_day", f"SELECT server, date, sum(n) AS n FROM counts_day WHERE outcome IS NOT NULL AND {within}"),
            ("attempts", f"SELECT server, date, count(*) AS n FROM attempts WHERE {within}"),
        )
    )
    for server, date in sorted(counted.keys() | stored.keys()):
        there, ended = stored.get((server, date), 0), counted.get((server, date), 0)
        if there != ended and date.isoformat() > expired.get(server, ""):
            yield (
                f"the table attempts has {there:,} rows of {server} and {date}, and {ended:,} leases ended then: run "
                "`crossdock pipeline rebuild`"
            )


def _negative(tables: Tables, dates: Collection[dt.date] | None) -> Iterator[str]:
    query = (
        "SELECT count(*) AS n FROM attempts WHERE wait_s < 0 AND protocol_in <> 'qless' AND protocol_out <> 'qless' "
        f"AND {_within(dates)}"
    )
    for row in _rows(tables, query, "attempts"):
        if row["n"]:
            yield f"{row['n']:,} attempts have a negative wait"


def _keys(tables: Tables, schema: TableSchema, dates: Collection[dt.date] | None) -> Iterator[str]:
    key = ", ".join(dict.fromkeys(("date", *schema.key)))
    groups = f"SELECT {key} FROM {schema.name} WHERE {_within(dates)} GROUP BY {key} HAVING count(*) > 1"
    query = f"SELECT count(*) AS n FROM ({groups})"
    for row in _rows(tables, query, schema.name):
        if row["n"]:
            yield f"the table {schema.name} has {row['n']:,} keys with several rows: run `crossdock pipeline rebuild`"


def _within(dates: Collection[dt.date] | None) -> str:
    if dates is None:
        return "TRUE"
    return f"date IN ({', '.join(f'DATE {date.isoformat()!r}' for date in sorted(dates))})" if dates else "FALSE"


def _rows(tables: Tables, query: str, name: str) -> list[dict[str, Any]]:
    rows = pa.table(QueryBuilder().register(name, tables[name].handle()).execute(query).read_all())
    found: list[dict[str, Any]] = rows.to_pylist()
    return found
