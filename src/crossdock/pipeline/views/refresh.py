"""Refreshes the views: computes the dates again whose rollups changed, and nothing else.

A view records the versions of the tables that it was computed from. The log of such a table says which dates changed
since, so a refresh needs no other memory, and one that was interrupted is simply repeated.
"""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from crossdock.pipeline.catalog import Progress, Tables
from crossdock.pipeline.log_tail import changed_dates
from crossdock.pipeline.tables import Table
from crossdock.pipeline.views.queries import QUERIES

#: The name under which a view records the price that it was computed with, in millionths.
_PRICE: Final = "price"

#: Rows that one query reads, approximately, which limits the memory of this process.
_ROWS_AT_ONCE: Final = 1_000_000


def refresh(tables: Tables, progress: Progress, price: float = 0.0) -> set[dt.date]:
    """Refresh all views. Returns the dates that were computed."""
    made: set[dt.date] = set()
    for done, (schema, (query, reads)) in enumerate(QUERIES.items()):
        progress("computing views", done, len(QUERIES))
        view = tables[schema.name]
        sources = {each.name: tables[each.name] for each in reads}
        made |= _refresh_one(view, query, sources, price)
    return made


def _refresh_one(view: Table, query: str, sources: dict[str, Table], price: float) -> set[dt.date]:
    handle = view.handle()
    opened = {name: table.handle() for name, table in sources.items()}
    versions = {name: source.version() for name, source in opened.items()}
    if "{price}" in query:
        versions[_PRICE] = round(price * 1_000_000)
    again = _PRICE in versions and view.source(_PRICE, handle) != versions[_PRICE]
    dates: set[dt.date] = set()
    for name, source in opened.items():
        since = -1 if again else view.source(name, handle)
        dates |= changed_dates(sources[name].storage, source, since)
    if not dates and all(view.source(name, handle) == version for name, version in versions.items()):
        return dates
    added = [
        action
        for some in _portions(dates, sources, opened)
        for action in view.write(_rows(view, select(query, opened, some, price)))
    ]
    view.commit(handle, added, replaced=view.files(dates, handle), sources=versions)
    return dates


def _portions(
    dates: Collection[dt.date], sources: Mapping[str, Table], opened: Mapping[str, DeltaTable]
) -> Iterator[list[dt.date]]:
    """The dates in portions of about `_ROWS_AT_ONCE` rows to read, or of one date. Every row of a view is made from
    rows of its own date."""
    rows: Counter[dt.date] = Counter()
    if len(dates) > 1:
        for name, table in sources.items():
            for file in table.files(dates, opened[name]):
                rows[file.date] += file.rows
    portion: list[dt.date] = []
    held = 0
    for date in sorted(dates):
        if portion and held + rows[date] > _ROWS_AT_ONCE:
            yield portion
            portion, held = [], 0
        portion.append(date)
        held += rows[date]
    if portion:
        yield portion


def select(query: str, opened: dict[str, DeltaTable], dates: Collection[dt.date], price: float = 0.0) -> pa.Table:
    """Run a view's query over these dates."""
    engine = QueryBuilder()
    for name, handle in opened.items():
        engine.register(name, handle)
    named = ", ".join(f"DATE '{date.isoformat()}'" for date in sorted(dates))
    cost = f"CAST({price!r} AS DOUBLE)" if price else "CAST(NULL AS DOUBLE)"
    return pa.table(engine.execute(query.format(dates=f"date IN ({named})", price=cost)).read_all())


def _rows(view: Table, found: pa.Table) -> pa.Table:
    return found.select(view.schema.names).cast(view.schema.arrow)
