"""Rows of the pipeline's tables, for the history's child process."""

import datetime as dt
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from crossdock.pipeline.reports.freshness import freshness
from crossdock.pipeline.reports.tables import Days, Reader, of_queue

#: Rows of a table, and its days.
ROWS: Final = 5_000
TABLE_DAYS: Final = 366

Part = dict[str, Any]


def table(
    tables: str, lake: str, name: str, days: int, until: str | None, queue: str | None, limit: int
) -> Iterator[Part]:
    """Rows of a table, newest day first, and how old the tables are. Raises PipelineError, ValueError."""
    last = dt.datetime.now(dt.UTC).date() if until is None else dt.date.fromisoformat(until)
    reader = Reader(tables, Days.until(last, min(days, TABLE_DAYS)))
    if name not in reader.tables:
        names = ", ".join(each.schema.name for each in reader.tables)
        raise ValueError(f"table {name} not found; the tables are {names}")
    schema = reader.tables[name].schema
    if queue and "queue" not in schema.names:
        raise ValueError(f"table {name} has no column queue")
    most = min(limit, ROWS)
    order = "date DESC, hour DESC" if "hour" in schema.names else "date DESC"
    query = f"SELECT {', '.join(schema.names)} FROM {name} WHERE {{here}} ORDER BY {order} LIMIT {most + 1}"
    rows = reader.rows(name, query, of_queue(queue))
    age = freshness(reader, lake)
    yield {
        "finished": True,
        "table": name,
        "about": schema.meaning,
        "columns": [{"name": column, "about": about} for column, _, about in schema.columns],
        "rows": rows[:most],
        "cut": len(rows) > most,
        "first": age.first,
        "last": age.last,
        "upto": age.upto,
        "waiting": age.waiting,
    }


def use_one_thread() -> None:
    """Threads of Arrow hold memory of their own."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
