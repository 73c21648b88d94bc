"""The page of report `queue`, of one queue: day by day, hour by hour, kind by kind."""

import datetime as dt
from typing import Final

from msgspec import structs

from crossdock.cli.reports.page import Page, Plot, Section, Table, Trend
from crossdock.cli.reports.queues import COST, COST_HEADS, PERCENTILES, SPREAD_HEADS, cost, more, outlook, spread
from crossdock.cli.show import lasting, number
from crossdock.pipeline.reports.queue import Day, Queue

_HOURS: Final = range(24)


def page(told: Queue, facts: list[str]) -> Page:
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
