"""Report `queue` of all queues: what came, what ran and how long it took, what it cost, and when each will be empty."""

import datetime as dt
from typing import Any, Final

import msgspec
import pyarrow.compute as pc

from crossdock.pipeline.reports.durations import Booked, Spread, booked
from crossdock.pipeline.reports.tables import Reader
from crossdock.pipeline.transforms.hourly import SPAN_H


class Outlook(msgspec.Struct):
    """Where a queue stands in its newest hour, by the rates of that hour so far and the two before."""

    hour: dt.datetime
    depth: int
    arrival_rate: float  #: a second
    service_rate: float
    empty_in_s: float | None  #: None: never, at these rates


class Cost(msgspec.Struct):
    """Of retries: attempts that came to nothing, and what they took of the workers' time."""

    attempts: int = 0
    again: int = 0  #: beyond the first of their job
    spent: int = 0
    run_s: float = 0.0
    spent_s: float = 0.0


class QueueRow(msgspec.Struct):
    queue: str
    arrived: int
    departed: int
    runs: int
    throughput: float  #: runs a second, over all the days
    failures: int
    failed: int
    retries: int
    wait: Spread
    run: Spread
    cost: Cost
    outlook: Outlook | None
    arrived_by_day: list[int]
    runs_by_day: list[int]
    failures_by_day: list[int]


class Queues(msgspec.Struct):
    days: list[dt.date]
    total: int  #: queues there are
    queues: list[QueueRow]  #: those with the most runs


_DAY_S: Final = 86_400


def queues(reader: Reader, top: int) -> Queues:
    days = reader.days.all()
    pages = {queue: page for (queue,), page in booked(reader, ("queue",)).items()}
    came: dict[str, dict[str, int]] = {}
    by_day: dict[str, dict[str, dict[dt.date, int]]] = {}
    for row in reader.sums("hourly", ["queue", "date"], {"arrived": "sum", "departed": "sum"}):
        sums = came.setdefault(row["queue"], {"arrived": 0, "departed": 0})
        for name in sums:
            sums[name] += row[name]
        by_day.setdefault(row["queue"], {}).setdefault("arrived", {})[row["date"]] = row["arrived"]
    for row in reader.sums("daily", ["queue", "date"], {"run_total": "sum", "failures": "sum"}):
        for name in ("run_total", "failures"):
            by_day.setdefault(row["queue"], {}).setdefault(name, {})[row["date"]] = row[name]
    names = sorted({*pages, *came}, key=lambda name: (-_runs(pages, name), name))
    costs, outlooks = cost(reader, ("queue",)), outlook(reader)
    found = []
    for name in names[:top]:
        page, sums = pages.get(name, Booked()), came.get(name, {"arrived": 0, "departed": 0})
        arrived, runs, failures = (
            [by_day.get(name, {}).get(what, {}).get(day, 0) for day in days]
            for what in ("arrived", "run_total", "failures")
        )
        found.append(
            QueueRow(
                name,
                sums["arrived"],
                sums["departed"],
                page.times["run"].total,
                page.times["run"].total / (len(days) * _DAY_S),
                page.failures,
                page.failed,
                page.retries,
                page.times["wait"].spread(),
                page.times["run"].spread(),
                costs.get((name,), Cost()),
                outlooks.get(name),
                arrived,
                runs,
                failures,
            )
        )
    return Queues(days, len(names), found)


def _runs(pages: dict[str, Booked], name: str) -> int:
    return pages[name].times["run"].total if name in pages else 0


def cost(reader: Reader, by: tuple[str, ...], where: pc.Expression | None = None) -> dict[tuple[Any, ...], Cost]:
    sums = dict.fromkeys(("attempts", "again", "spent", "run_s", "spent_s"), "sum")
    rows = reader.sums("retries", list(by), sums, where)
    return {tuple(row[name] for name in by): Cost(*(row[name] for name in sums)) for row in rows}


def outlook(reader: Reader, where: pc.Expression | None = None) -> dict[str, Outlook]:
    """By the newest hour of each queue. One that rests has that depth still, and rates that went down to nothing."""
    last = {row["queue"]: row["hour"] for row in reader.sums("forecast", ["queue"], {"hour": "max"}, where)}
    if not last:
        return {}
    now = max(row["hour"] for row in reader.sums("hourly", ["date"], {"hour": "max"}))
    columns = ("queue", "hour", "flush_epoch", "depth", "arrival_rate", "service_rate", "empty_in_s")
    newest = pc.field("hour").isin(sorted(set(last.values())))
    found: dict[str, tuple[int, Outlook]] = {}
    for row in reader.rows("forecast", columns, newest if where is None else newest & where):
        queue, hour, flush_epoch = row["queue"], row["hour"], row["flush_epoch"]
        if hour != last[queue] or flush_epoch < found.get(queue, (0,))[0]:
            continue
        here = Outlook(hour, row["depth"], row["arrival_rate"], row["service_rate"], row["empty_in_s"])
        if now - hour >= dt.timedelta(hours=SPAN_H):
            here = Outlook(now, here.depth, 0.0, 0.0, None if here.depth > 0 else 0.0)
        found[queue] = (flush_epoch, here)
    return {queue: here for queue, (_, here) in found.items()}
