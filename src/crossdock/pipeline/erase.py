"""Erases a person's data from the tables, in place and without Spark.

The result is what a rebuild from the erased lake gives. Rows of jobs (`attempts`, `links`, `flows`) lose their jids and
error texts. Failures are counted by cause, which is made of the message, so those of the erased jobs move to the empty
cause: the counts of the causes concerned are computed again from the lake. Positions stay, and files are replaced
without a change of data, so no other view is computed again. Then old files are deleted.

The caller holds the lock of the tables. An interrupted erase is repeated: what is erased already is left alone.
"""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crossdock.lake.erase import erase_rows
from crossdock.lake.selection import ERASED, Chosen, any_between
from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Progress, Tables
from crossdock.pipeline.erased_failures import Recounted, recount
from crossdock.pipeline.schemas.appended import ATTEMPTS, COUNTS_DAY, FAILURES_DAY, LINKS
from crossdock.pipeline.schemas.views import FAILURES, FLOWS
from crossdock.pipeline.storage import is_local
from crossdock.pipeline.tables import File, Table
from crossdock.pipeline.views.queries import QUERIES
from crossdock.pipeline.views.refresh import select

#: Tables that have data of single jobs.
_NAMES: Final = (ATTEMPTS.name, LINKS.name, FLOWS.name, FAILURES_DAY.name, COUNTS_DAY.name, FAILURES.name)

_Rows: TypeAlias = Any  #: a column of booleans


class CountedTables(NamedTuple):
    rows: dict[str, int]  #: by table, without those that have none
    jids: set[str]  #: of the chosen ones, those that a table has


def count(tables: Tables, lake: Lake, chosen: Chosen, progress: Progress) -> CountedTables:
    """Rows that an erase would change. Those of counts per day are not listed: they only move between groups."""
    found: dict[str, int] = {}
    jids: set[str] = set()
    for done, name in enumerate(_NAMES):
        progress("looking into tables", done, len(_NAMES))
        for _, rows in _rows_with(tables[name], lake, chosen):
            found[name] = found.get(name, 0) + rows.num_rows
            column = "example_jid" if name == FAILURES.name else "jid"
            if column in rows.column_names:
                jids.update(jid for jid in rows.column(column).to_pylist() if jid)
    return CountedTables(found, jids & set(chosen.jids.to_pylist()))


def erase(tables: Tables, lake: Lake, chosen: Chosen, progress: Progress) -> None:
    """`lake` may be erased already or not yet. Raises what delta-rs raises; then it can be repeated."""
    for done, name in enumerate((ATTEMPTS.name, LINKS.name, FLOWS.name)):
        progress("erasing in tables", done, len(_NAMES))
        _in_place(tables[name], lake, chosen)
    progress("counting failures again", 0, 1)
    dates = _recount(tables, lake, chosen, progress)
    _examples(tables, lake, chosen, dates)
    for done, name in enumerate(_NAMES):
        progress("deleting old files of tables", done, len(_NAMES))
        delete_old_files(tables[name])


def delete_old_files(table: Table) -> None:
    """Delete the files that the newest version does not name. In an object store there is no lock: files that a writer
    has not committed yet may be those of another process, so only replaced ones are deleted."""
    handle = table.open()
    if handle is not None:
        whole = is_local(table.location)
        if handle.vacuum(0, enforce_retention_duration=False, full=whole):
            handle.vacuum(0, dry_run=False, enforce_retention_duration=False, full=whole)


def _matching(table: Table, lake: Lake, chosen: Chosen) -> Callable[[pa.Table], _Rows]:
    """Which rows of the table have data of the jobs. Jids that are erased are not among the chosen ones."""

    def by_number(rows: pa.Table) -> _Rows:
        left = pc.fill_null(pc.not_equal(rows.column("jid"), ERASED), False)
        if "error_message" in rows.column_names:
            left = pc.or_(left, pc.is_valid(rows.column("error_message")))
        return pc.and_(_numbered(rows, lake, chosen), left)

    def of_flow(rows: pa.Table) -> _Rows:
        return pc.or_(by_number(rows), _named(rows, lake, chosen))

    def by_jid(rows: pa.Table) -> _Rows:
        column = "example_jid" if table.name == FAILURES.name else "jid"
        return pc.and_(_of(rows, lake), pc.is_in(rows.column(column), chosen.jids))

    return {ATTEMPTS.name: by_number, LINKS.name: by_number, FLOWS.name: of_flow}.get(table.name, by_jid)


def _of(rows: pa.Table, lake: Lake) -> _Rows:
    return pc.fill_null(pc.equal(rows.column("server"), lake.server), False)


def _numbered(rows: pa.Table, lake: Lake, chosen: Chosen) -> _Rows:
    return pc.and_(_of(rows, lake), pc.is_in(rows.column("number"), chosen.numbers))


def _named(rows: pa.Table, lake: Lake, chosen: Chosen) -> _Rows:
    """Flows that are named by one of the jobs, which need not be the first one. A name that is a batch's stays."""
    batches = pc.fill_null(pc.list_value_length(rows.column("groups")), 0)
    return pc.and_(_of(rows, lake), pc.and_(pc.equal(batches, 0), pc.is_in(rows.column("name"), chosen.jids)))


def _rows_with(table: Table, lake: Lake, chosen: Chosen) -> Iterator[tuple[File, pa.Table]]:
    """The files that have data of the jobs, and those rows."""
    if table.name == COUNTS_DAY.name:
        return
    matching = _matching(table, lake, chosen)
    for file in table.files():
        if not _meets(file, chosen):
            continue
        with table.storage.open(file.path) as source, pq.ParquetFile(source) as parquet:
            found = []
            for group in range(parquet.num_row_groups):
                rows = parquet.read_row_group(group)
                found.append(rows.filter(matching(rows)))
        rows = pa.concat_tables(found) if found else None
        if rows is not None and rows.num_rows:
            yield file, rows


def _meets(file: File, chosen: Chosen) -> bool:
    """Whether the file may have one of the numbers, by its statistics."""
    if file.lowest is None or file.highest is None:
        return True
    return any_between(chosen.numbers, file.lowest, file.highest)


def _in_place(table: Table, lake: Lake, chosen: Chosen) -> None:
    handle = table.open()
    if handle is None:
        return
    files = [file for file, _ in _rows_with(table, lake, chosen)]
    matching = _matching(table, lake, chosen)

    def change(rows: pa.Table) -> pa.Table:
        if table.name == FLOWS.name:
            named = _named(rows, lake, chosen)
            rows = _with(rows, "name", pc.if_else(named, ERASED, rows.column("name")))
            return erase_rows(rows, _numbered(rows, lake, chosen))
        return erase_rows(rows, matching(rows))

    made = [table.joined([file], change) for file in files]
    table.commit(handle, made, replaced=files, changes=False)


def _with(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, rows.schema.field(at), column)


def _recount(tables: Tables, lake: Lake, chosen: Chosen, progress: Progress) -> set[dt.date]:
    """Count the failures of the jobs' causes again, from the lake. Returns the dates."""
    table = tables[FAILURES_DAY.name]
    position = table.position(lake.id)
    dates: set[dt.date] = set()
    for date, found in recount(tables, lake, chosen, position.entry, progress):
        for schema, rows in ((FAILURES_DAY, found.failures), (COUNTS_DAY, found.counts)):
            _replace_keys(tables[schema.name], lake, date, found, rows)
        dates.add(date)
    return dates


def _replace_keys(table: Table, lake: Lake, date: dt.date, found: Recounted, fresh: pa.Table) -> None:
    """Replace the rows of the keys that were counted again."""
    keys = found.failure_keys if table.name == FAILURES_DAY.name else found.count_keys
    handle = table.open()
    if handle is None or not keys:
        return
    names = [name for name in table.schema.key if name not in ("server", "date")]
    replaced, kept = [], []
    for file in table.files([date], handle):
        with table.storage.open(file.path) as source:
            rows = pq.ParquetFile(source).read()
        own = _of(rows, lake).to_pylist()
        rest = [
            not (mine and key in keys)
            for mine, key in zip(own, zip(*(rows.column(name).to_pylist() for name in names), strict=True), strict=True)
        ]
        if not all(rest):
            replaced.append(file)
            kept.append(rows.filter(pa.array(rest)))
    made = table.write(_whole(table, date, [*kept, fresh]))
    table.commit(handle, made, replaced=replaced, changes=False)


def _whole(table: Table, date: dt.date, parts: list[pa.Table]) -> pa.Table:
    """The parts with all columns; files have no date, and older ones lack newer columns."""
    schema = table.schema.arrow
    whole = []
    for part in parts:
        arrays: list[Any] = []
        for field in schema:
            if field.name == "date":
                arrays.append(pa.repeat(pa.scalar(date, field.type), part.num_rows))
            elif field.name in part.column_names:
                arrays.append(part.column(field.name).cast(field.type))
            else:
                arrays.append(pa.nulls(part.num_rows, field.type))
        whole.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(whole)


def _examples(tables: Tables, lake: Lake, chosen: Chosen, dates: set[dt.date]) -> None:
    """Erase examples of dates that the lake has deleted, and compute the view of all these dates again."""
    table = tables[FAILURES_DAY.name]
    handle = table.open()
    if handle is None:
        return
    matching = _matching(table, lake, chosen)
    files = [file for file, _ in _rows_with(table, lake, chosen)]

    def change(rows: pa.Table) -> pa.Table:
        which = matching(rows)
        for name, text in (("jid", ERASED), ("message", ""), ("cause", "")):
            rows = _with(rows, name, pc.if_else(which, text, rows.column(name)))
        return rows

    made = [table.joined([file], change) for file in files]
    table.commit(handle, made, replaced=files, changes=False)
    view = tables[FAILURES.name]
    stale = dates | {file.date for file in files} | {file.date for file, _ in _rows_with(view, lake, chosen)}
    seen = view.open()
    if seen is None or not stale:
        return
    query, _ = QUERIES[FAILURES]
    fresh = select(query, {FAILURES_DAY.name: table.handle()}, stale)
    added = view.write(fresh.select(view.schema.names).cast(view.schema.arrow))
    view.commit(seen, added, replaced=view.files(stale, seen), changes=False)
