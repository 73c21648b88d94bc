"""The page of report `queue`, of all queues."""

from crossdock.cli.reports.page import Page, Plot, Section, Table, Trend
from crossdock.cli.show import lasting, number, rate, share, some
from crossdock.pipeline.reports.durations import Spread
from crossdock.pipeline.reports.queues import Cost, Outlook, Queues

SPREAD_HEADS = (">P50", ">P95", ">P99", ">MEAN", ">MAX")
COST_HEADS = (">ATTEMPTS", ">AGAIN", ">SPENT", ">BUSY", ">WASTED", ">PART")
PERCENTILES = (
    "percentiles are of all values of a row together, within 1.97 %; a wait counts on the day the job was leased, "
    "a run on the day it succeeded"
)
COST = "attempts beyond a job's first (AGAIN), attempts that came to nothing (SPENT), and the time these took (WASTED)"
BARS = 12  #: of a plot


def page(told: Queues, facts: list[str]) -> Page:
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
