"""The pages of reports `slo`, `capacity`, `cost` and `flaky`."""

import math
from typing import Final

from crossdock.cli.render import times
from crossdock.cli.render.page import Page, Plot, Section, Table, Trend
from crossdock.cli.render.queue_pages import BARS, more, ratio
from crossdock.cli.render.tables import lasting, number, rate, share, some
from crossdock.pipeline.reports.capacity import Capacity, Needs
from crossdock.pipeline.reports.cost import Cost, QueueCost
from crossdock.pipeline.reports.flaky import Flaky
from crossdock.pipeline.reports.slo import WINDOWS, Met, Slo


def slo_page(report: Slo, facts: list[str]) -> Page:
    rows = report.objectives
    met = Section(
        "Objectives",
        Table(
            ("QUEUE", "OBJECTIVE", ">IN TIME", ">OF", ">RATIO", ">BUDGET LEFT", "STATE"),
            [
                (each.queue, _objective(each), number(each.whole.good), number(each.whole.of), ratio(each.whole.ratio),
                 _left(each.budget_left), each.state)
                for each in rows
            ],
        ),
        "all days of the report; a job that died counts as late; the budget is the share of jobs that may be late",
        [
            Plot("lines", f"{each.queue}: {_objective(each)}", "of the jobs", report.days,
                 {"in time": each.by_day, "target": [each.target] * len(report.days)})
            for each in rows[:BARS]
        ],
    )  # fmt: skip
    end = f"{times.minute(report.end, year=True)}, the newest event" if report.end else "the newest event"
    burn = Section(
        "Burn rates",
        Table(
            ("QUEUE", "OBJECTIVE", *(f">{name.upper()}" for name in WINDOWS), "STATE"),
            [
                (each.queue, _objective(each), *(_burn(each.windows[name].burn_rate) for name in WINDOWS), each.state)
                for each in rows
            ],
        ),
        f"of the hours before {end}; 1 uses up the budget exactly; fast burn: 14.4 in an hour or 6 in six hours; slow "
        "burn: 1 in three days",
    )
    return Page("Objectives", facts, [met, burn])


def _objective(each: Met) -> str:
    verb = "done" if each.what == "done" else "started"
    return f"{100 * each.target:.6g} % {verb} in {lasting(each.within_s)}"


def _left(left: float | None) -> str:
    return "-" if left is None else share(left) if left >= 0 else f"-{share(-left)}"


def _burn(burn: float | None) -> str:
    return "-" if burn is None else f"{burn:.3g}" if burn < 1_000 else f"{burn:,.0f}"


# capacity


_NEEDED: Final = (
    "NEEDED: workers, one job at a time each, for a mean wait of at most TARGET; TRIES: attempts per job; RUN: mean "
    "run time, CV²: its variance / mean²; LOAD: busy workers on average; SEEN: workers that ran such jobs"
)


def capacity_page(report: Capacity, facts: list[str]) -> Page:
    rows, few = report.queues, report.queues[:BARS]
    needs = Section(
        "Workers for the busiest hour",
        Table(
            ("QUEUE", "PEAK", ">ARRIVING", ">TRIES", ">RUN", ">CV²", ">LOAD", ">TARGET", ">NEEDED", ">SEEN"),
            [_needs(each) for each in rows],
            (">TRIES", ">CV²"),
        ),
        "; ".join(filter(None, (
            more(len(rows), report.total, "queue", "load"),
            _NEEDED,
            "" if report.arrival_scv == 1 else f"arrivals with CV² {report.arrival_scv:g}",
        ))),
        [
            Plot("bars", "Workers needed", "workers", [each.queue for each in few],
                 {"needed": [float(each.needed or 0) for each in few]}),
            Plot("bars", "Load: busy workers on average", "workers", [each.queue for each in few],
                 {"load": [each.load for each in few]}),
        ] if few else (),
    )  # fmt: skip
    whole = math.ceil(report.load + 1e-9) if report.load else 0
    together = Section(
        "All queues",
        Table(
            (">QUEUES", ">LOAD", ">NEEDED, NOT SHARED", ">AT LEAST, SHARED"),
            [(number(report.total), f"{report.load:.3g}", number(report.needed), number(whole))] if rows else [],
        ),
        "workers that serve several queues share their idle time; the load alone is the least that all queues need if "
        "their busiest hours coincide",
    )
    return Page("Capacity", facts, [needs, together])


def _needs(each: Needs) -> tuple[str, ...]:
    return (
        each.queue, times.hour(each.peak_hour), rate(each.arrival_rate), f"{each.attempts_per_job:.3g}",
        lasting(each.run_mean), f"{each.run_scv:.2g}", f"{each.load:.3g}", lasting(each.target_wait_s),
        number(each.needed), number(each.seen),
    )  # fmt: skip


# cost


def cost_page(report: Cost, facts: list[str]) -> Page:
    rows, few = report.queues, report.queues[:BARS]
    unit = f" {report.currency}" if report.currency else ""
    listed = Section(
        "Cost by queue",
        Table(
            ("QUEUE", ">BUSY", ">DONE", f">COST{unit.upper()}", ">PER 1,000", ">WASTED", ">PART", "BY DAY"),
            [_cost(each) for each in rows] + ([_cost(report.whole, "all")] if rows else []),
            ("BY DAY", ">DONE"),
        ),
        "; ".join(filter(None, (
            more(len(rows), report.total, "queue", "cost"),
            f"{_money(report.price)}{unit} per worker hour; PER 1,000 jobs done; WASTED: the cost of failed attempts",
        ))),
        [
            Plot("columns", f"Cost{unit} by day", "money", report.days,
                 {"cost": report.whole.by_day}),
            Plot("bars", f"Cost{unit} by queue", "money", [each.queue for each in few],
                 {"useful": [each.cost - each.wasted for each in few], "wasted": [each.wasted for each in few]}),
        ] if few else (),
    )  # fmt: skip
    return Page("Cost", facts, [listed])


def _cost(each: QueueCost, name: str = "") -> tuple[str | Trend, ...]:
    part = share(each.wasted / each.cost) if each.cost > 0 else "-"
    per = "-" if each.per_1000 is None else _money(each.per_1000)
    return (
        name or each.queue, lasting(each.busy_s), number(each.done), _money(each.cost), per, _money(each.wasted), part,
        Trend(each.by_day),
    )  # fmt: skip


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 0.1 or amount == 0 else f"{amount:.2g}"


# flaky


_FLAKY: Final = (
    "AGAIN: jobs that were done only after a failed attempt; FLAKY: their share of the jobs that were done or died; "
    "ordered by what the number of jobs makes sure"
)


def flaky_page(report: Flaky, facts: list[str]) -> Page:
    rows, few = report.kinds, report.kinds[:BARS]
    listed = Section(
        "Kinds whose jobs need several attempts",
        Table(
            ("QUEUE", "KIND", ">DONE", ">AGAIN", ">FLAKY", ">DIED", ">WASTED", "TOP ERROR", "BY DAY"),
            [
                (each.queue, each.kind, number(each.outcomes.succeeded), number(each.outcomes.again),
                 share(each.share), number(each.outcomes.died), lasting(each.outcomes.wasted_s), each.cause,
                 Trend(each.by_day))
                for each in rows
            ],
            ("BY DAY", ">WASTED", ">DONE"),
        ),
        "; ".join(filter(None, (
            f"{len(rows):,} of {some(report.total, 'kind')}, the surest first; --top shows more"
            if len(rows) < report.total else "",
            _FLAKY,
        ))),
        [
            Plot("bars", "Jobs that needed several attempts", "of the jobs",
                 [f"{each.kind or chr(39) * 2} in {each.queue}" for each in few],
                 {"flaky": [each.share for each in few]}),
        ] if few else (),
    )  # fmt: skip
    return Page("Flaky", facts, [listed])
