"""The pages of report `queue`: all queues, and one queue by day, hour and kind."""

import datetime as dt
from collections.abc import Sequence
from typing import Final

from crossdock.cli.render import times
from crossdock.cli.render.page import Page, Plot, Section, Table, Trend
from crossdock.cli.render.tables import lasting, number, rate, share, some
from crossdock.pipeline.reports.durations import Spread, Times
from crossdock.pipeline.reports.outcomes import Outcomes
from crossdock.pipeline.reports.outlook import Outlook
from crossdock.pipeline.reports.queue import Day, Queue
from crossdock.pipeline.reports.queues import Queues

SPREAD_HEADS: Final = (">P50", ">P95", ">P99", ">MEAN", ">MAX")
OUTCOME_HEADS: Final = (">DONE", ">DIED", ">JOBS OK", ">FAILED", ">RETRIED", ">TRIES OK")
PERCENTILES: Final = (
    "percentiles are over all values of a row, within 1.97 %; a wait counts on the day the job was leased, "
    "a run on the day it succeeded"
)
OUTCOMES: Final = (
    "JOBS OK: done of those that were done or died; TRIES OK: successful attempts of all; FAILED counts attempts, "
    "RETRIED those after which the job is tried again"
)
COST_HEADS: Final = (">ATTEMPTS", ">FAILED", ">BUSY", ">WASTED", ">PART")
COST: Final = "run time of all attempts (BUSY), and of the failed ones (WASTED)"
BARS: Final = 12  #: of a plot

_SPANS: Final = (
    ("Waits: from ready to leased", "wait"),
    ("Runs: from leased to success", "run"),
    ("Total: from push to success", "total"),
)


def queues_page(report: Queues, facts: list[str]) -> Page:
    rows = report.queues
    few, days = rows[:BARS], report.days
    names = [row.queue for row in few]
    totals = [[sum(of_day) for of_day in zip(*column, strict=True)] for column in (
        [row.done_by_day for row in rows], [row.failed_by_day for row in rows]
    )]  # fmt: skip
    came = Section(
        "Throughput",
        Table(
            ("QUEUE", ">ARRIVED", ">DEPARTED", ">DONE", ">RATE", "DONE BY DAY"),
            [
                (row.queue, number(row.arrived), number(row.departed), number(row.outcomes.succeeded), rate(row.rate),
                 Trend(row.done_by_day))
                for row in rows
            ],
        ),
        _sentences(
            more(len(rows), report.total, "queue", "jobs done"),
            f"RATE is over the observed {lasting(report.observed_s)}" if rows else "",
        ),
        [
            Plot("columns", "Jobs done and failed attempts", "jobs", days,
                 dict(zip(("done", "failed"), totals, strict=True))),
            Plot("bars", "Jobs done by queue", "jobs", names, {"done": [row.outcomes.succeeded for row in few]}),
        ] if rows else (),
    )  # fmt: skip
    ended = Section(
        "Outcomes",
        Table(("QUEUE", *OUTCOME_HEADS), [(row.queue, *outcomes(row.outcomes)) for row in rows]),
        OUTCOMES,
    )
    long = [
        _durations(title, what, "QUEUE", [(row.queue, row.times) for row in rows], names)
        for title, what in _SPANS
        if what != "total" or any(row.times.total.n for row in rows)
    ]
    ahead = Section(
        "Outlook",
        Table(
            ("QUEUE", *_OUTLOOK_HEADS),
            [(row.queue, *outlook(row.outlook)) for row in rows if row.outlook is not None],
            ("OLDEST",),
        ),
        _AHEAD,
    )
    costs = Section(
        "Cost of failures", Table(("QUEUE", *COST_HEADS), [(row.queue, *cost(row.outcomes)) for row in rows]), COST
    )
    return Page("Queues", facts, [came, ended, *long, ahead, costs])


def _durations(
    title: str,
    what: str,
    head: str,
    parts: Sequence[tuple[str, Times]],
    names: Sequence[str] = (),
    plot: Plot | None = None,
) -> Section:
    spreads = [(name, getattr(times, what)) for name, times in parts]
    bars = [Plot("bars", f"95th percentile of {_PLURAL[what]}", "time", names,
                 {"p95": [of.p95 for _, of in spreads[: len(names)]]})]  # fmt: skip
    return Section(
        title,
        Table((head, f">{_PLURAL[what].upper()}", *SPREAD_HEADS), [(name, *spread(of)) for name, of in spreads]),
        PERCENTILES if what == "wait" else "",
        [plot] if plot else bars,
    )


_PLURAL: Final = {"wait": "waits", "run": "runs", "total": "jobs"}


def _sentences(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def more(shown: int, total: int, thing: str, by: str) -> str:
    """`by` is what the list is sorted by."""
    return f"{shown:,} of {some(total, thing)}, those with the most {by}; --top shows more" if shown < total else ""


def spread(of: Spread) -> tuple[str, ...]:
    return number(of.n), *map(lasting, (of.p50, of.p95, of.p99, of.mean, of.max))


def ratio(of: float | None) -> str:
    """A share near 1 with as many digits as its distance from 1 needs."""
    if of is None:
        return "-"
    digits = 1
    while digits < 4 and 0 < 1 - of < 10.0 ** -(digits + 2) * 5:
        digits += 1
    shown = f"{100 * of:.{digits}f}"
    return f"{'100' if of == 1 else '0' if of == 0 else shown} %"


def outcomes(of: Outcomes) -> tuple[str, ...]:
    return (
        number(of.succeeded), number(of.died), ratio(of.job_success), number(of.failed_attempts), number(of.retried),
        ratio(of.attempt_success),
    )  # fmt: skip


def cost(of: Outcomes) -> tuple[str, ...]:
    part = share(of.wasted_s / of.busy_s) if of.busy_s > 0 and of.wasted_s >= 0 else "-"
    return number(of.attempts), number(of.failed_attempts), lasting(of.busy_s), lasting(of.wasted_s), part


_OUTLOOK_HEADS: Final = (">DEPTH", "OLDEST", ">ARRIVING", ">SERVED", "OUTLOOK")
_AHEAD: Final = (
    "depth: jobs waiting, running or retrying at the newest event; rates: of the hour so far, and of the hour before "
    "if this one is young; OLDEST: the hour in which the oldest job arrived, if jobs leave in order"
)


def outlook(of: Outlook) -> tuple[str, ...]:
    arriving, served = of.arrival_rate, of.service_rate
    oldest = times.hour(of.oldest_since) if of.oldest_since else "-"
    return number(of.depth), oldest, rate(arriving, served), rate(served, arriving), outlook_text(of)


def outlook_text(of: Outlook) -> str:
    if of.depth <= 0:
        return "empty"
    if of.empty_in_s is not None:
        return f"empty in {lasting(of.empty_in_s)}"
    if of.drain_s is None:
        return f"grows by {rate(of.grows)}, no job departs" if of.grows > 0 else "idle: nothing arrives or departs"
    drains = f"drains in {lasting(of.drain_s)} if nothing arrives"
    return f"grows by {rate(of.grows)}, {drains}" if of.grows > 0 else f"keeps its depth, {drains}"


# One queue.


def queue_page(report: Queue, facts: list[str]) -> Page:
    days = [day.date for day in report.days]
    whole = report.whole
    parts = [*((f"{day.date}", day.part.times) for day in report.days), ("all", whole.times)]
    ended = [day.part.outcomes for day in report.days]
    daily = Section(
        "Day by day",
        Table(
            ("DAY", ">ARRIVED", ">DEPARTED", *OUTCOME_HEADS[:4]),
            [_day(day) for day in report.days]
            + [("all", number(sum(day.arrived for day in report.days)),
                number(sum(day.departed for day in report.days)), *outcomes(whole.outcomes)[:4])],
        ),
        f"{rate(report.rate)} done over the observed {lasting(report.observed_s)}; {OUTCOMES}",
        [
            Plot("columns", "Jobs done and failed attempts", "jobs", days, {
                "done": [each.succeeded for each in ended],
                "failed": [each.failed_attempts for each in ended],
            }),
        ],
    )  # fmt: skip
    long = [
        _durations(title, what, "DAY", parts, plot=_percentiles(report, what, days))
        for title, what in _SPANS
        if what != "total" or whole.times.total.n
    ]
    ahead = Section("Outlook", Table(_OUTLOOK_HEADS, [outlook(report.outlook)] if report.outlook else []), _AHEAD)
    kinds = Section(
        "Kinds",
        Table(
            ("KIND", ">DONE", ">DIED", ">JOBS OK", ">TRIES OK", ">WAIT P95", ">RUN P50", ">RUN P95"),
            [
                (kind.kind, number(kind.part.outcomes.succeeded), number(kind.part.outcomes.died),
                 ratio(kind.part.outcomes.job_success), ratio(kind.part.outcomes.attempt_success),
                 lasting(kind.part.times.wait.p95), lasting(kind.part.times.run.p50),
                 lasting(kind.part.times.run.p95))
                for kind in report.kinds
            ],
            (">RUN P50", ">TRIES OK"),
        ),
        more(len(report.kinds), report.kinds_total, "kind", "jobs done"),
    )  # fmt: skip
    costs = Section(
        "Cost of failures",
        Table(
            ("DAY", *COST_HEADS),
            [*((f"{day.date}", *cost(day.part.outcomes)) for day in report.days), ("all", *cost(whole.outcomes))],
        ),
        COST,
    )
    return Page(f"Queue {report.queue}", facts, [daily, _hourly(report), *long, ahead, kinds, costs])


def _day(day: Day) -> tuple[str, ...]:
    return f"{day.date}", number(day.arrived), number(day.departed), *outcomes(day.part.outcomes)[:4]


def _percentiles(report: Queue, what: str, days: list[dt.date]) -> Plot:
    spreads = [getattr(day.part.times, what) for day in report.days]
    lines = {name: [getattr(each, name) for each in spreads] for name in ("p50", "p95", "p99")}
    return Plot("lines", f"{_PLURAL[what].capitalize()}, percentiles of each day", "time", days, lines)


def _hourly(report: Queue) -> Section:
    hours = [hour.hour for hour in report.hours]
    rows = []
    for day in report.days:
        mine = [hour for hour in report.hours if hour.hour.date() == day.date]
        if mine:
            rows.append(
                (
                    f"{day.date}",
                    f"{mine[0].hour:%H}-{mine[-1].hour:%H}h" if len(mine) > 1 else f"{mine[0].hour:%H}h",
                    f"{day.arrived / len(mine):.3g}",
                    number(max(hour.arrived for hour in mine)),
                    Trend([hour.arrived for hour in mine]),
                    Trend([hour.departed for hour in mine]),
                )
            )
    return Section(
        "Hour by hour",
        Table(("DAY", "HOURS", ">MEAN", ">MOST", "ARRIVED", "DEPARTED"), rows, ("HOURS", "DEPARTED")),
        "arrivals an hour; hours are UTC, by the server's clock, from the first event to the last",
        [
            Plot("lines", "Jobs an hour", "jobs an hour", hours,
                 {"arrived": [hour.arrived for hour in report.hours],
                  "departed": [hour.departed for hour in report.hours]}),
            Plot("lines", "Jobs in the queue", "jobs", hours,
                 {"waiting or running": [hour.depth for hour in report.hours]}),
        ],
    )  # fmt: skip
