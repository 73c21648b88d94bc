"""The page of report `queue`, of all queues."""

import datetime as dt
from typing import Final

from msgspec import structs

from crossdock.cli.render.page import Page, Plot, Section, Table, Trend
from crossdock.cli.render.tables import lasting, number, rate, share, some
from crossdock.pipeline.reports.durations import Spread
from crossdock.pipeline.reports.queue import Day, Queue
from crossdock.pipeline.reports.queues import Cost, Outlook, Queues

SPREAD_HEADS = (">P50", ">P95", ">P99", ">MEAN", ">MAX")
COST_HEADS = (">ATTEMPTS", ">AGAIN", ">SPENT", ">BUSY", ">WASTED", ">PART")
PERCENTILES = (
    "percentiles are of all values of a row together, within 1.97 %; a wait counts on the day the job was leased, "
    "a run on the day it succeeded"
)
COST = "attempts beyond a job's first (AGAIN), attempts that came to nothing (SPENT), and the time these took (WASTED)"
BARS = 12  #: of a plot


def queues_page(told: Queues, facts: list[str]) -> Page:
    rows = told.queues
    few, days = rows[:BARS], [f"{day:%m-%d}" for day in told.days]
    names = [row.queue for row in few]
    totals = [[sum(of_day) for of_day in zip(*column, strict=True)] for column in (
        [row.runs_by_day for row in rows], [row.failures_by_day for row in rows]
    )]  # fmt: skip
    came = Section(
        "Throughput",
        Table(
            ("QUEUE", ">ARRIVED", ">RUNS", ">RATE", ">FAILURES", ">FAILED", ">RETRIES", "RUNS BY DAY"),
            [
                (row.queue, number(row.arrived), number(row.runs), rate(row.throughput), number(row.failures),
                 number(row.failed), number(row.retries), Trend(row.runs_by_day))
                for row in rows
            ],
        ),
        more(len(rows), told.total, "queue", "runs"),
        [
            Plot("columns", "Runs and failures", "jobs", days, dict(zip(("runs", "failures"), totals, strict=True))),
            Plot("bars", "Runs by queue", "jobs", names, {"runs": [row.runs for row in few]}),
        ] if rows else (),
    )  # fmt: skip
    long = [
        Section(
            title,
            Table(("QUEUE", f">{what.upper()}S", *SPREAD_HEADS), [(row.queue, *spread(of)) for row, of in pairs]),
            PERCENTILES if what == "wait" else "",
            [Plot("bars", f"95th percentile of {what}s", "time", names, {"p95": [of.p95 for _, of in pairs[:BARS]]})],
        )
        for title, what, pairs in (
            ("Waits: from ready to leased", "wait", [(row, row.wait) for row in rows]),
            ("Runs: from leased to success", "run", [(row, row.run) for row in rows]),
        )
    ]
    ahead = Section(
        "Outlook",
        Table(
            ("QUEUE", ">DEPTH", ">ARRIVING", ">SERVED", ">EMPTY IN", "AFTER"),
            [(row.queue, *outlook(row.outlook)) for row in rows if row.outlook],
        ),
        "jobs after that hour, running and waiting for a retry, too; by the rates of it and the two before",
    )
    costs = Section(
        "Cost of retries", Table(("QUEUE", *COST_HEADS), [(row.queue, *cost(row.cost)) for row in rows]), COST
    )
    return Page("Queues", facts, [came, *long, ahead, costs])


def more(shown: int, total: int, thing: str, by: str) -> str:
    """`by`: what they have most of."""
    return f"{shown:,} of {some(total, thing)}, those with the most {by}; --top shows more" if shown < total else ""


def spread(of: Spread) -> tuple[str, ...]:
    return number(of.total), *map(lasting, (of.p50, of.p95, of.p99, of.mean, of.max))


def outlook(of: Outlook) -> tuple[str, ...]:
    empty = "never" if of.empty_in_s is None else "now" if of.empty_in_s == 0 else lasting(of.empty_in_s)
    arriving, served = of.arrival_rate, of.service_rate
    return number(of.depth), rate(arriving, served), rate(served, arriving), empty, f"{of.hour:%m-%d %H}h"


def cost(of: Cost) -> tuple[str, ...]:
    part = share(of.spent_s / of.run_s) if of.run_s > 0 and of.spent_s >= 0 else "-"
    counts = (number(of.attempts), number(of.again), number(of.spent))
    return *counts, lasting(of.run_s), lasting(of.spent_s), part


# The page of report `queue`, of one queue: day by day, hour by hour, kind by kind.


_HOURS: Final = range(24)


def queue_page(told: Queue, facts: list[str]) -> Page:
    told = structs.replace(told, days=_since_it_began(told.days))
    days = [f"{day.date:%m-%d}" for day in told.days]
    parts = [(f"{day.date}", day.part) for day in told.days] + [("all", told.whole)]
    whole = (
        ("all", number(sum(day.arrived for day in told.days)), number(sum(day.departed for day in told.days)),
         number(told.whole.run.total), *map(number, (told.whole.failures, told.whole.failed, told.whole.retries)))
    )  # fmt: skip
    daily = Section(
        "Day by day",
        Table(
            ("DAY", ">ARRIVED", ">DEPARTED", ">RUNS", ">FAILURES", ">FAILED", ">RETRIES"),
            [
                (f"{day.date}", number(day.arrived), number(day.departed), number(day.part.run.total),
                 *map(number, (day.part.failures, day.part.failed, day.part.retries)))
                for day in told.days
            ] + [whole],
        ),
        plots=[
            Plot("columns", "Runs and failures", "jobs", days, {
                "runs": [day.part.run.total for day in told.days],
                "failures": [day.part.failures for day in told.days],
            }),
        ],
    )  # fmt: skip
    long = [
        Section(
            title,
            Table(
                ("DAY", f">{what.upper()}S", *SPREAD_HEADS),
                [(day, *spread(part.wait if what == "wait" else part.run)) for day, part in parts],
            ),
            PERCENTILES if what == "wait" else "",
            [_percentiles(told, what, days)],
        )
        for title, what in (("Waits: from ready to leased", "wait"), ("Runs: from leased to success", "run"))
    ]
    ahead = Section(
        "Outlook",
        Table(
            (">DEPTH", ">ARRIVING", ">SERVED", ">EMPTY IN", "AFTER"), [outlook(told.outlook)] if told.outlook else []
        ),
        "jobs after that hour, running and waiting for a retry, too; by the rates of it and the two before",
    )
    kinds = Section(
        "Kinds",
        Table(
            ("KIND", ">RUNS", ">FAILURES", ">WAIT P95", ">RUN P50", ">RUN P95", ">RUN MEAN"),
            [
                (kind.kind, number(kind.part.run.total), number(kind.part.failures), lasting(kind.part.wait.p95),
                 lasting(kind.part.run.p50), lasting(kind.part.run.p95), lasting(kind.part.run.mean))
                for kind in told.kinds
            ],
        ),
        more(len(told.kinds), told.kinds_total, "kind", "runs"),
    )  # fmt: skip
    costs = Section(
        "Cost of retries", Table(("DAY", *COST_HEADS), [(day, *cost(part.cost)) for day, part in parts]), COST
    )
    return Page(f"Queue {told.queue}", facts, [daily, _hourly(told), *long, ahead, kinds, costs])


def _since_it_began(days: list[Day]) -> list[Day]:
    """Without the days before anything happened, of which there is nothing to show."""
    busy = [
        at for at, day in enumerate(days) if day.arrived or day.departed or day.part.wait.total or day.part.run.total
    ]
    return days[busy[0] :] if busy else days


def _percentiles(told: Queue, what: str, days: list[str]) -> Plot:
    spreads = [day.part.wait if what == "wait" else day.part.run for day in told.days]
    lines = {name: [getattr(each, name) for each in spreads] for name in ("p50", "p95", "p99")}
    return Plot("lines", f"{what.capitalize()}s, percentiles of each day", "time", days, lines)


def _hourly(told: Queue) -> Section:
    hours = {hour.hour: hour for hour in told.hours}
    slots = [
        dt.datetime(day.date.year, day.date.month, day.date.day, hour, tzinfo=dt.UTC)
        for day in told.days
        for hour in _HOURS
    ]
    last = max(hours, default=None)
    slots = [slot for slot in slots if last is not None and slot <= last]
    came, went = (
        [getattr(hours[slot], name) if slot in hours else 0 for slot in slots] for name in ("arrived", "departed")
    )
    depth: list[float | None] = []
    for slot in slots:
        # Nothing came and nothing went: as deep as before.
        before = depth[-1] if depth else None
        depth.append(hours[slot].depth if slot in hours else before)
    labels = [f"{slot:%m-%d %H}h" for slot in slots]
    rows = []
    for day in told.days:
        mine = [
            hours.get(dt.datetime(day.date.year, day.date.month, day.date.day, hour, tzinfo=dt.UTC)) for hour in _HOURS
        ]
        most = max((hour.arrived for hour in mine if hour), default=0)
        rows.append(
            (
                f"{day.date}",
                f"{day.arrived / 24:.3g}",
                number(most),
                Trend([hour.arrived if hour else 0 for hour in mine]),
                Trend([hour.departed if hour else 0 for hour in mine]),
            )
        )
    return Section(
        "Hour by hour",
        Table(("DAY", ">MEAN AN HOUR", ">MOST", "ARRIVED, 0H TO 23H", "DEPARTED, 0H TO 23H"), rows),
        "hours are UTC, by the server's clock",
        [
            Plot("lines", "Jobs an hour", "jobs an hour", labels, {"arrived": came, "departed": went}),
            Plot("lines", "Jobs in the queue", "jobs", labels, {"waiting or running": depth}),
        ],
    )
