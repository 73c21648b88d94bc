"""Tables `depths` and `forecast`: how many jobs each queue has, and when it will be empty.

The depth of a queue is the sum of all arrivals and departures since the last flush. `depths` carries it from day to
day, so a day needs only the day before. Events of a server never go back in time, so new events change the newest days
only. When an older day changes, all later days are computed again.
"""

import datetime as dt
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import QueryBuilder

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.log_tail import all_dates, changed_dates
from crossdock.pipeline.schemas.views import DEPTHS, FORECAST

_HOUR_S: Final = 3_600
#: An hour that was observed for less than this is averaged together with the hour before.
_ENOUGH_S: Final = 900
_SOURCES: Final = ("hourly", "counts_hour")


class _Queue(NamedTuple):
    server: str | None
    flush_epoch: int
    queue: str


def _queue(row: dict[str, Any]) -> _Queue:
    return _Queue(row["server"], row["flush_epoch"], row["queue"])


class _Hour(NamedTuple):
    hour: dt.datetime
    arrived: int
    departed: int


class _Depth:
    """The depth of one queue, with the arrivals that may still wait, oldest first."""

    __slots__ = ("arrivals", "depth", "previous")

    def __init__(self, depth: int = 0, oldest: dt.datetime | None = None) -> None:
        self.depth = depth
        self.arrivals: list[tuple[dt.datetime, int]] = [(oldest, depth)] if oldest is not None and depth > 0 else []
        self.previous: _Hour | None = None

    def add(self, hour: _Hour) -> None:
        self.depth += hour.arrived - hour.departed
        self.arrivals.append((hour.hour, hour.arrived))
        waiting, kept = self.depth, []
        for at, n in reversed(self.arrivals):
            if waiting <= 0:
                break
            kept.append((at, min(n, waiting)))
            waiting -= n
        self.arrivals = kept[::-1]
        self.previous = hour

    def close(self) -> None:
        """End a day. The next day knows no more than the table says, whether or not it is computed now."""
        self.arrivals = [(self.oldest, self.depth)] if self.oldest is not None else []

    @property
    def oldest(self) -> dt.datetime | None:
        return self.arrivals[0][0] if self.depth > 0 and self.arrivals else None


def refresh_depths(tables: Tables) -> set[dt.date]:
    """Compute the changed days of both tables. Returns them."""
    depths, forecast = tables[DEPTHS.name], tables[FORECAST.name]
    handles = {table.name: table.handle() for table in (depths, forecast)}
    opened = {name: tables[name].handle() for name in _SOURCES}
    versions = {name: handle.version() for name, handle in opened.items()}
    dirty: set[dt.date] = set()
    for name, handle in opened.items():
        for table in (depths, forecast):
            since = table.source(name, handles[table.name])
            dirty |= changed_dates(tables[name].storage, handle, since)
    # Retention deletes the oldest hours. Their days keep the depths, which all later ones are computed from.
    oldest = min(all_dates(opened["hourly"]), default=dt.date.max)
    dirty = {day for day in dirty if day >= oldest}
    if not dirty:
        return dirty
    # The newest hour of the previous refresh was not over.
    last = max((file.date for file in forecast.files()), default=dt.date.max)
    first = max(oldest, min(*dirty, last))
    days = sorted({day for handle in opened.values() for day in all_dates(handle) if day >= first})
    engine = QueryBuilder()
    for name, handle in opened.items():
        engine.register(name, handle)
    engine.register("depths", handles[DEPTHS.name])
    known = _carried(engine, max((file.date for file in depths.files() if file.date < first), default=None))
    seen = _observed(engine, first)
    # Rows of one day at a time are Python objects, which take ten times the memory of Arrow's columns.
    made: dict[str, list[pa.Table]] = {DEPTHS.name: [], FORECAST.name: []}
    for day in days:
        hours = _hours(engine, day)
        made[FORECAST.name].append(pa.Table.from_pylist(_day(day, known, hours, seen), schema=FORECAST.arrow))
        made[DEPTHS.name].append(pa.Table.from_pylist(_closing(day, known), schema=DEPTHS.arrow))
    for table in (depths, forecast):
        handle = handles[table.name]
        if all(table.source(name, handle) == version for name, version in versions.items()):
            continue  # an earlier process was interrupted between the two commits
        rows = pa.concat_tables(made[table.name])
        gone = [file for file in table.files(handle=handle) if file.date >= first]
        table.commit(handle, table.write(rows), replaced=gone, sources=versions)
    return set(days)


def _carried(engine: QueryBuilder, day: dt.date | None) -> dict[_Queue, _Depth]:
    if day is None:
        return {}
    rows = _rows(engine, f"SELECT * FROM depths WHERE date = DATE '{day.isoformat()}'")
    known = {_queue(row): _Depth(row["depth"], row["oldest_since"]) for row in rows}
    for queue, hour in _hours(engine, day):
        if queue in known:  # else a flush came after it
            known[queue].previous = hour
    return known


def _hours(engine: QueryBuilder, day: dt.date) -> list[tuple[_Queue, _Hour]]:
    query = (
        "SELECT date, server, hour, flush_epoch, queue, arrived, departed FROM hourly "
        f"WHERE date = DATE '{day.isoformat()}' ORDER BY hour, flush_epoch"
    )
    return [(_queue(row), _Hour(row["hour"], row["arrived"], row["departed"])) for row in _rows(engine, query)]


def _observed(engine: QueryBuilder, first: dt.date) -> dict[tuple[str | None, dt.datetime], tuple[float, float]]:
    """From when to when each server was observed in each hour: whole hours, but for the first hour of each server and
    the newest hour of all."""
    since = first - dt.timedelta(days=1)
    rows = _rows(
        engine,
        "SELECT server, hour, max(last_at) AS at FROM counts_hour "
        f"WHERE date >= DATE '{since.isoformat()}' GROUP BY server, hour",
    )
    begins = _begins(engine, {row["server"] for row in rows}, since)
    newest = max((row["at"] for row in rows), default=0.0)
    found = {}
    for row in rows:
        start = row["hour"].timestamp()
        begin = max(start, min(begins.get(row["server"], start), start + _HOUR_S))
        found[row["server"], row["hour"]] = (begin, min(start + _HOUR_S, newest))
    return found


def _begins(engine: QueryBuilder, servers: set[str | None], since: dt.date) -> dict[str | None, float]:
    """The times of the first events of servers. Those that had events the day before `since` are left out: they began
    earlier. Usually these are all, and then the cost does not depend on the number of days."""
    before = (since - dt.timedelta(days=1)).isoformat()
    known = _rows(engine, f"SELECT DISTINCT server FROM counts_hour WHERE date = DATE '{before}'")
    if servers <= {row["server"] for row in known}:
        return {}
    rows = _rows(engine, "SELECT server, min(first_at) AS at FROM counts_hour GROUP BY server")
    return {row["server"]: row["at"] for row in rows}


def _day(
    day: dt.date,
    known: dict[_Queue, _Depth],
    hours: Iterable[tuple[_Queue, _Hour]],
    seen: dict[tuple[str | None, dt.datetime], tuple[float, float]],
) -> list[dict[str, Any]]:
    made = []
    for queue, hour in hours:
        depth = known.setdefault(queue, _Depth())
        before = depth.previous
        depth.add(hour)
        begin, end = seen.get((queue.server, hour.hour), (0.0, _HOUR_S))
        seconds, arrived, departed = end - begin, hour.arrived, hour.departed
        earlier = hour.hour - dt.timedelta(hours=1)
        if seconds < _ENOUGH_S and (queue.server, earlier) in seen:
            begin, end = seen[queue.server, earlier]
            seconds += end - begin
            if before is not None and before.hour == earlier:
                arrived, departed = arrived + before.arrived, departed + before.departed
        seconds = max(seconds, 1.0)
        made.append(_forecast(day, queue, hour.hour, depth.depth, seconds, arrived / seconds, departed / seconds))
    return made


def _forecast(
    day: dt.date, queue: _Queue, hour: dt.datetime, depth: int, seconds: float, arrival: float, service: float
) -> dict[str, Any]:
    empty = drain = None
    if depth <= 0:
        empty = drain = 0.0
    else:
        empty = depth / (service - arrival) if service > arrival else None
        drain = depth / service if service > 0 else None
    return {
        "date": day, **queue._asdict(), "hour": hour, "depth": depth, "observed_s": seconds, "arrival_rate": arrival,
        "service_rate": service, "empty_in_s": empty, "drain_s": drain,
    }  # fmt: skip


def _closing(day: dt.date, known: dict[_Queue, _Depth]) -> list[dict[str, Any]]:
    """The depths at the end of a day. A flush empties all queues, so older epochs are dropped."""
    newest: dict[str | None, int] = {}
    for queue in known:
        newest[queue.server] = max(newest.get(queue.server, 0), queue.flush_epoch)
    for queue in [queue for queue in known if queue.flush_epoch < newest[queue.server]]:
        del known[queue]
    rows = [
        {"date": day, **queue._asdict(), "depth": depth.depth, "oldest_since": depth.oldest}
        for queue, depth in known.items()
        if depth.depth or (depth.previous is not None and depth.previous.hour.date() == day)
    ]
    for depth in known.values():
        depth.close()
    return rows


def _rows(engine: QueryBuilder, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.table(engine.execute(query).read_all()).to_pylist()
    return rows
