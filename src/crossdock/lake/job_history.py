"""The history of one job: its events in the lake, newest day first, and how far the search went."""

import datetime as dt
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc
import pyarrow.dataset as ds

from crossdock.lake.table import Lake, LakeFile, NoLake

#: How far back a job is looked for, and for how long.
DAYS: Final = 30
SECONDS: Final = 5.0

#: Events of one job, newest first; characters of one text.
EVENTS: Final = 2_000
_TEXT: Final = 2_000

_BATCH_ROWS: Final = 65_536

_COLUMNS: Final = (
    "seq", "at", "event", "state", "outcome", "why", "jid", "number", "queue", "to_queue", "kind", "via", "lease_via",
    "worker", "attempt", "wait_s", "run_s", "due", "lost", "error_group", "error_message", "detail",
)  # fmt: skip

Part = dict[str, Any]


def by_day(
    lake: str | Path,
    ident: int | str,
    segment_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Part]:
    """The events of a job by day, newest day first, then how far the search went. It ends at the job's push, because no
    event of a job is older.

    `ident` is a number, or a jid, which selects the newest job that had it. `segment_s` is the setting of the server
    that writes the lake; None: it writes none. Raises NoLake, Damaged.
    """
    began = clock()
    opened = _open(lake, segment_s)
    files = sorted(opened.files(), key=lambda file: (file.date, file.first), reverse=True)
    days = [(date, list(some)) for date, some in groupby(files, lambda file: file.date)]
    found, stopped = 0, "end of the lake"
    looked: list[str] = []
    for date, some in days:
        if len(looked) >= DAYS:
            stopped = f"{DAYS} days"
            break
        rows, is_whole = _of_day(opened, some, ident, EVENTS - found, lambda: clock() - began < SECONDS)
        if rows and isinstance(ident, str):
            ident = rows[0]["number"]
            rows = [row for row in rows if row["number"] == ident]
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


def _open(lake: str | Path, segment_s: float | None) -> Lake:
    """The first segment makes the lake, so a server that has just started has none."""
    try:
        return Lake.open(lake)
    except NoLake as error:
        if segment_s is None:
            raise NoLake("there is no lake, and this server writes no history, because lake.on is false") from error
        raise NoLake(
            "the lake has no events yet: the server writes its first segment when its oldest event is "
            f"{segment_s:g} s old (lake.segment_s); try again then"
        ) from error


def _of_day(
    lake: Lake, files: list[LakeFile], ident: int | str, room: int, has_time: Callable[[], bool]
) -> tuple[list[Part], bool]:
    """The job's events of one day, newest first, and whether all files were read."""
    rows: list[Part] = []
    chosen = (
        pc.field("number") == ident
        if isinstance(ident, int)
        else (pc.field("jid") == ident) & pc.field("number").is_valid()
    )
    for file in files:
        path, filesystem = lake.store.path(file.path)
        data: Any = ds.dataset(path, format="parquet", filesystem=filesystem)
        names = [name for name in _COLUMNS if name in data.schema.names]
        batches = data.to_batches(columns=names, filter=chosen, batch_size=_BATCH_ROWS, batch_readahead=0)
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
