"""Queries of the history's child process: one job's events in the lake, and rows of the pipeline's tables."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.lake.table import Lake, LakeFile
from crossdock.pipeline.reports.freshness import freshness
from crossdock.pipeline.reports.tables import Days, Reader, of_queue

#: How far back a job is looked for, and for how long.
DAYS: Final = 30
SECONDS: Final = 5.0

#: Events of one job, newest first; characters of one text; rows of a table.
EVENTS: Final = 2_000
_TEXT: Final = 2_000
ROWS: Final = 5_000
TABLE_DAYS: Final = 366

_BATCH_ROWS: Final = 65_536

_COLUMNS: Final = (
    "seq", "at", "event", "state", "outcome", "why", "jid", "queue", "to_queue", "kind", "via", "lease_via", "worker",
    "attempt", "wait_s", "run_s", "due", "lost", "error_group", "error_message", "detail",
)  # fmt: skip

Part = dict[str, Any]


def job(lake: str, number: int, clock: Callable[[], float] = time.monotonic) -> Iterator[Part]:
    """The events of a job by day, newest day first, then how far the search went. It ends at the job's push, because no
    event of a job is older. Raises NoLake, Damaged."""
    began = clock()
    opened = Lake.open(lake)
    files = sorted(opened.files(), key=lambda file: (file.date, file.first), reverse=True)
    days = [(date, list(some)) for date, some in groupby(files, lambda file: file.date)]
    found, stopped = 0, "end of the lake"
    looked: list[str] = []
    for date, some in days:
        if len(looked) >= DAYS:
            stopped = f"{DAYS} days"
            break
        rows, is_whole = _of_day(opened, some, number, EVENTS - found, lambda: clock() - began < SECONDS)
        found += len(rows)
        if is_whole:
            looked.append(date)
        yield {"day": date, "events": rows}
        if any(row["event"] == "pushed" for row in rows):
            stopped = "its push"
            break
        if not is_whole:
            stopped = f"{EVENTS} events" if found >= EVENTS else f"{SECONDS:.0f} s"
            break
    yield {
        "finished": True,
        "stopped_at": stopped,
        "complete": stopped == "its push",
        "looked_back_to": looked[-1] if looked else None,
        "days": len(looked),
        "seconds": round(clock() - began, 3),
        "upto": _moment(opened.at),
    }


def _of_day(
    lake: Lake, files: list[LakeFile], number: int, room: int, has_time: Callable[[], bool]
) -> tuple[list[Part], bool]:
    """The job's events of one day, newest first, and whether all files were read."""
    rows: list[Part] = []
    for file in files:
        path, filesystem = lake.store.path(file.path)
        data: Any = ds.dataset(path, format="parquet", filesystem=filesystem)
        names = [name for name in _COLUMNS if name in data.schema.names]
        batches = data.to_batches(
            columns=names, filter=pc.field("number") == number, batch_size=_BATCH_ROWS, batch_readahead=0
        )
        for batch in batches:
            rows += map(_event, batch.to_pylist())
            if not has_time():
                return _newest(rows, room), False
        if len(rows) > room:
            return _newest(rows, room), False
    return _newest(rows, room), True


def _newest(rows: list[Part], room: int) -> list[Part]:
    return sorted(rows, key=lambda row: -row["seq"])[:room]


def _event(row: Part) -> Part:
    shown = {name: value[:_TEXT] if isinstance(value, str) else value for name, value in row.items()}
    shown["at"] = _moment(row["at"])
    shown["due"] = _moment(row["due"]) if row.get("due") else None
    return shown


def _moment(at: float) -> str | None:
    """None: the server's clock had a value that is no date."""
    try:
        return dt.datetime.fromtimestamp(at, dt.UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


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
