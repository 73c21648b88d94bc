"""Report `workers`: how busy each worker was in the hours with work, and the outcomes."""

import datetime as dt
from typing import Any, Final

import msgspec

from crossdock.pipeline.reports.tables import Reader

_HOUR_S: Final = 3_600
_COUNTS: Final = ("attempts", "succeeded", "spent", "other")
_SUMS: Final = ", ".join(f"sum({name}) AS {name}" for name in ("busy_s", *_COUNTS))


class Worker(msgspec.Struct):
    server: str
    worker: str
    protocol: str
    busy_s: float
    hours: int  #: hours with work
    utilisation: float  #: busy time as a share of these hours; over 1 for parallel jobs
    peak: float  #: of its busiest hour
    attempts: int
    succeeded: int
    spent: int  #: wasted attempts: failed, lost, expired, stalled
    other: int
    busy_by_day: list[float]


class Protocol(msgspec.Struct):
    protocol: str
    workers: int
    busy_s: float
    attempts: int
    succeeded: int
    spent: int
    other: int


class Workers(msgspec.Struct):
    days: list[dt.date]
    servers: list[str]
    total: int
    protocols: list[Protocol]
    workers: list[Worker]  #: the busiest
    hours: list[tuple[dt.datetime, float]]  #: busy seconds of all workers, in every hour from the first to the last


def workers(reader: Reader, top: int) -> Workers:
    query = f"""
    WITH hours AS (
        SELECT server, coalesce(worker, '') AS worker, coalesce(protocol, '') AS protocol, hour, {_SUMS}
        FROM workers WHERE {{here}} GROUP BY 1, 2, 3, 4
    )
    SELECT server, worker, protocol, count(CASE WHEN busy_s > 0 OR attempts > 0 THEN 1 END) AS hours,
        max(busy_s) AS peak, {_SUMS}
    FROM hours GROUP BY server, worker, protocol ORDER BY busy_s DESC, worker, protocol, server
    """
    rows = reader.rows("workers", query)
    protocols: dict[str, Protocol] = {}
    for row in rows:
        protocol = protocols.setdefault(row["protocol"], Protocol(row["protocol"], 0, 0.0, 0, 0, 0, 0))
        protocol.workers += 1
        for name in ("busy_s", *_COUNTS):
            setattr(protocol, name, getattr(protocol, name) + row[name])
    by_day = _by_day(reader, {_key(row) for row in rows[:top]})
    found = [
        Worker(
            server=row["server"] or "",
            worker=row["worker"],
            protocol=row["protocol"],
            busy_s=row["busy_s"],
            hours=row["hours"],
            utilisation=row["busy_s"] / (row["hours"] * _HOUR_S) if row["hours"] else 0.0,
            peak=row["peak"] / _HOUR_S,
            busy_by_day=[by_day[_key(row)].get(day, 0.0) for day in reader.seen_days],
            **{name: row[name] for name in _COUNTS},
        )
        for row in rows[:top]
    ]
    ordered = sorted(protocols.values(), key=lambda protocol: -protocol.busy_s)
    return Workers(reader.seen_days, reader.servers, len(rows), ordered, found, _hours(reader))


_Key = tuple[str | None, str, str]


def _key(row: dict[str, Any]) -> _Key:
    return row["server"], row["worker"], row["protocol"]


def _by_day(reader: Reader, keys: set[_Key]) -> dict[_Key, dict[dt.date, float]]:
    query = """
    SELECT server, coalesce(worker, '') AS worker, coalesce(protocol, '') AS protocol, date, sum(busy_s) AS busy_s
    FROM workers WHERE {here} GROUP BY 1, 2, 3, 4
    """
    found: dict[_Key, dict[dt.date, float]] = {key: {} for key in keys}
    for row in reader.rows("workers", query) if keys else ():
        if _key(row) in keys:
            found[_key(row)][row["date"]] = row["busy_s"]
    return found


def _hours(reader: Reader) -> list[tuple[dt.datetime, float]]:
    """An hour without work counts as 0."""
    query = "SELECT hour, sum(busy_s) AS busy_s FROM workers WHERE {here} GROUP BY hour ORDER BY hour"
    busy = {row["hour"]: row["busy_s"] for row in reader.rows("workers", query)}
    if not busy:
        return []
    hour, last, found = min(busy), max(busy), []
    while hour <= last:
        found.append((hour, busy.get(hour, 0.0)))
        hour += dt.timedelta(hours=1)
    return found
