"""Report `workers`: how busy each was in the hours in which it had work, and what came of it."""

import datetime as dt
from typing import Any, Final

import msgspec
import pyarrow.compute as pc

from crossdock.pipeline.reports.tables import Reader

_HOUR_S: Final = 3_600
_COUNTS: Final = ("attempts", "succeeded", "spent", "other")


class Worker(msgspec.Struct):
    worker: str
    door: str
    busy_s: float
    hours: int  #: in which it had work
    utilisation: float  #: its busy time in them, as a part of them; over 1 with many hands
    peak: float  #: of its busiest hour
    attempts: int
    succeeded: int
    spent: int  #: for nothing: failed, lost, lapsed, stalled
    other: int
    busy_by_day: list[float]


class Door(msgspec.Struct):
    door: str
    workers: int
    busy_s: float
    attempts: int
    succeeded: int
    spent: int
    other: int


class Workers(msgspec.Struct):
    days: list[dt.date]
    total: int
    doors: list[Door]
    workers: list[Worker]  #: the busiest
    hours: list[tuple[dt.datetime, float]]  #: busy seconds of all workers


def workers(reader: Reader, top: int) -> Workers:
    days = reader.days.all()
    sums = dict.fromkeys(("busy_s", *_COUNTS), "sum")
    rows = reader.sums("workers", ["worker", "door"], sums)
    busiest = sorted(rows, key=lambda row: (-row["busy_s"], row["worker"] or "", row["door"] or ""))[:top]
    doors: dict[str, Door] = {}
    for row in rows:
        door = doors.setdefault(row["door"] or "", Door(row["door"] or "", 0, 0.0, 0, 0, 0, 0))
        door.workers += 1
        for name in sums:
            setattr(door, name, getattr(door, name) + row[name])
    hours = _hours(reader, {(row["worker"], row["door"]) for row in busiest})
    found = []
    for row in busiest:
        mine = hours[row["worker"], row["door"]]
        busy = sum(mine.values())
        by_day = dict.fromkeys(days, 0.0)
        for hour, seconds in mine.items():
            # Work over midnight is noted with the day on which it ended, and done on the one before.
            if hour.date() in by_day:
                by_day[hour.date()] += seconds
        found.append(
            Worker(
                row["worker"] or "",
                row["door"] or "",
                row["busy_s"],
                len(mine),
                busy / (len(mine) * _HOUR_S) if mine else 0.0,
                max(mine.values(), default=0.0) / _HOUR_S,
                busy_by_day=list(by_day.values()),
                **{name: row[name] for name in _COUNTS},
            )
        )
    all_hours = [(row["hour"], row["busy_s"]) for row in reader.sums("workers", ["hour"], {"busy_s": "sum"})]
    ordered = sorted(doors.values(), key=lambda door: -door.busy_s)
    return Workers(days, len(rows), ordered, found, all_hours)


_Key = tuple[str | None, str | None]


def _hours(reader: Reader, keys: set[_Key]) -> dict[_Key, dict[dt.datetime, float]]:
    """Busy seconds of each hour of these workers: rows of the same hour, noted on two days, are added up."""
    found: dict[_Key, dict[dt.datetime, float]] = {key: {} for key in keys}
    named: Any = pc.field("worker").isin(sorted({worker for worker, _ in keys if worker is not None}))
    if any(worker is None for worker, _ in keys):
        named = named | pc.field("worker").is_null()
    for row in reader.rows("workers", ("worker", "door", "hour", "busy_s"), named) if keys else ():
        mine = found.get((row["worker"], row["door"]))
        if mine is not None:
            mine[row["hour"]] = mine.get(row["hour"], 0.0) + row["busy_s"]
    return found
