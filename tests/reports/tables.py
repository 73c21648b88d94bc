"""Tiny tables by the catalog's own schemas, written without Spark."""

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.transaction import Transaction
from pyspark.sql.types import LongType

from crossdock.pipeline.catalog import VIEWS, Catalog
from crossdock.pipeline.refresh import VIEW
from crossdock.pipeline.transforms.durations import GAMMA, NOTHING

LAST: Final = dt.date(2026, 11, 16)


def day(before: int = 0) -> dt.date:
    return LAST - dt.timedelta(days=before)


def at(before: int = 0, hour: int = 0, minute: int = 0) -> dt.datetime:
    date = day(before)
    return dt.datetime(date.year, date.month, date.day, hour, minute, tzinfo=dt.UTC)


class Tables:
    """All tables, empty, up to batch 1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.catalog = Catalog(folder)
        for table in self.catalog:
            table.create()
        for view in VIEWS:
            self._commit(view.name, {}, [], CommitProperties(app_transactions=[Transaction(VIEW, 1)]))

    def put(self, name: str, *rows: dict[str, Any]) -> None:
        """Columns that a row does not name are 0 if they are counts, else null."""
        schema = self.catalog[name].schema
        blank = {field.name: 0 if isinstance(field.dataType, LongType) else None for field in schema}
        for row in rows:
            assert set(row) <= set(blank), set(row) - set(blank)
        self._commit(name, blank, rows, None)

    def book(self, date: dt.date, queue: str, kind: str, *, flush_epoch: int = 0, **what: Any) -> None:
        """Waits and runs as lists of seconds, and counts: rows of `daily` and the bookings they were made of."""
        row: dict[str, Any] = {"date": date, "flush_epoch": flush_epoch, "queue": queue, "kind": kind}
        page, daily = dict(row), dict(row)
        facts = []
        for event in ("wait", "run"):
            values = what.pop(event, [])
            n, mean, m2 = moments(values)
            most = max(values, default=None)
            daily |= {f"{event}_total": n, f"{event}_mean": mean, f"{event}_vk": m2, f"{event}_max": most}
            for log, count in Counter(map(bucket, values)).items():
                facts.append({**page, "event": event, "log": log, "n": count})
        self.put("daily", {**daily, **what})
        if facts:
            self.put("bookings", *facts)
            self.put("histogram", *facts)

    def _commit(self, name: str, blank: dict[str, Any], rows: Sequence[dict[str, Any]], marks: Any) -> None:
        table = self.catalog[name]
        schema = pa.schema(Schema.from_json(table.schema.json()).to_arrow())
        data = pa.Table.from_pylist([{**blank, **row} for row in rows], schema=schema)
        write_deltalake(DeltaTable(table.folder), data, mode="append", commit_properties=marks)


def moments(values: Sequence[float]) -> tuple[int, float, float]:
    if not values:
        return 0, 0.0, 0.0
    mean = math.fsum(values) / len(values)
    return len(values), mean, math.fsum((value - mean) ** 2 for value in values)


def bucket(value: float) -> int:
    return math.ceil(math.log(value) / math.log(GAMMA)) if value > 0 else NOTHING
