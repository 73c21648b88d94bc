"""Report `queue` of one queue: day by day, kind by kind, and what came and went every hour."""

import datetime as dt

import msgspec
import pyarrow.compute as pc

from crossdock.pipeline.reports.durations import Booked, Spread, booked
from crossdock.pipeline.reports.queues import Cost, Outlook, cost, outlook
from crossdock.pipeline.reports.tables import Reader


class Part(msgspec.Struct):
    """A day or a kind of the queue, or all of it."""

    failures: int
    failed: int
    retries: int
    wait: Spread
    run: Spread
    cost: Cost


class Day(msgspec.Struct):
    date: dt.date
    arrived: int
    departed: int
    part: Part


class Kind(msgspec.Struct):
    kind: str
    part: Part


class Hour(msgspec.Struct):
    hour: dt.datetime
    arrived: int
    departed: int
    depth: int | None  #: when it ended; None: it is not known


class Queue(msgspec.Struct):
    queue: str
    days: list[Day]
    kinds_total: int
    kinds: list[Kind]  #: those with the most runs
    hours: list[Hour]  #: all in which something happened
    whole: Part
    outlook: Outlook | None


def queue(reader: Reader, top: int, name: str) -> Queue:
    here = pc.field("queue") == name
    hours = _hours(reader, here)
    dates = booked(reader, ("date",), here)
    whole = booked(reader, ("queue",), here).get((name,), Booked())
    kinds = booked(reader, ("kind",), here)
    costs = {by: cost(reader, (by,), here) for by in ("date", "kind", "queue")}
    most = sorted(kinds, key=lambda key: (-kinds[key].times["run"].total, key[0] or ""))
    days = []
    for date in reader.days.all():
        of_day = [hour for hour in hours if hour.hour.date() == date]
        part = _part(dates.get((date,), Booked()), costs["date"].get((date,)))
        days.append(Day(date, sum(each.arrived for each in of_day), sum(each.departed for each in of_day), part))
    return Queue(
        name,
        days,
        len(kinds),
        [Kind(key[0] or "", _part(kinds[key], costs["kind"].get(key))) for key in most[:top]],
        hours,
        _part(whole, costs["queue"].get((name,))),
        outlook(reader, here).get(name),
    )


def _part(page: Booked, costs: Cost | None) -> Part:
    times = page.times
    counts = (page.failures, page.failed, page.retries)
    return Part(*counts, times["wait"].spread(), times["run"].spread(), costs or Cost())


def _hours(reader: Reader, here: pc.Expression) -> list[Hour]:
    depths: dict[dt.datetime, tuple[int, int]] = {}
    for row in reader.rows("forecast", ("hour", "flush_epoch", "depth"), here):
        if row["flush_epoch"] >= depths.get(row["hour"], (0, 0))[0]:
            depths[row["hour"]] = (row["flush_epoch"], row["depth"])
    rows = reader.sums("hourly", ["hour"], {"arrived": "sum", "departed": "sum"}, here)
    return [Hour(row["hour"], row["arrived"], row["departed"], depths.get(row["hour"], (0, None))[1]) for row in rows]
