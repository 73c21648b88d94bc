"""Refreshes the views: computes the dates again whose rollups changed, and nothing else.

A view records the versions of the tables that it was computed from. The log of such a table says which dates changed
since, so a refresh needs no other memory, and one that was interrupted is simply repeated.
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from crossdock.pipeline.catalog import Progress, Tables
from crossdock.pipeline.log_tail import changed_dates
from crossdock.pipeline.tables import Table
from crossdock.pipeline.views.queries import QUERIES

#: The name under which a view records the price that it was computed with, in millionths.
_PRICE: Final = "price"


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
    added = view.write(_rows(view, select(query, opened, dates, price))) if dates else []
    view.commit(handle, added, replaced=view.files(dates, handle), sources=versions)
    return dates


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
