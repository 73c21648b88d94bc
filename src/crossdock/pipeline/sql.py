"""Short helpers for queries of deltalake's engine (DataFusion)."""

import datetime as dt
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder


def engine_of(opened: Mapping[str, DeltaTable]) -> QueryBuilder:
    """An engine that knows these tables by name."""
    engine = QueryBuilder()
    for name, handle in opened.items():
        engine.register(name, handle)
    return engine


def table_of(engine: QueryBuilder, query: str) -> pa.Table:
    return pa.table(engine.execute(query).read_all())


def rows_of(engine: QueryBuilder, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table_of(engine, query).to_pylist()
    return rows


def on_dates(dates: Collection[dt.date]) -> str:
    """A condition on the column `date`."""
    return f"date IN ({', '.join(_date(date) for date in sorted(dates))})"


def between(first: dt.date, last: dt.date) -> str:
    """A condition on the column `date`, both days included."""
    return f"date BETWEEN {_date(first)} AND {_date(last)}"


def quoted(text: str) -> str:
    """A text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def at(time: dt.datetime) -> str:
    """A time as a literal."""
    return f"to_timestamp_micros({int(time.timestamp() * 1_000_000)})"


def _date(date: dt.date) -> str:
    return f"DATE '{date.isoformat()}'"
