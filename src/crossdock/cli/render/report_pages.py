"""The pages of reports `failures`, `slow` and `workers`."""

import re
from typing import Final

from crossdock.cli.render.page import Page, Plot, Section, Table, Trend
from crossdock.cli.render.queue_pages import (
    BARS,
    OUTCOME_HEADS,
    OUTCOMES,
    PERCENTILES,
    SPREAD_HEADS,
    more,
    outcomes,
    spread,
)
from crossdock.cli.render.tables import lasting, number, share
from crossdock.cli.render.times import minute
from crossdock.pipeline.reports.failures import Cause, Failures
from crossdock.pipeline.reports.slow import Attempt, Slow
from crossdock.pipeline.reports.workers import Workers

_DIGITS: Final = re.compile(r"\d+")


def failures_page(report: Failures, facts: list[str]) -> Page:
    causes, few = report.causes, report.causes[:BARS]
    rows = [(each.queue, *outcomes(each.outcomes)) for each in report.queues]
    by_queue = Section(
        "Deaths and failures by queue",
        Table(("QUEUE", *OUTCOME_HEADS), [*rows, ("all", *outcomes(report.whole))] if rows else []),
        f"a job died if it failed and was not tried again; {OUTCOMES}",
        [
            Plot("columns", "Failures", "failures", report.days, {
                "tried again": [n - deaths for n, deaths in zip(report.by_day, report.deaths_by_day, strict=True)],
                "died": report.deaths_by_day,
            }),
        ] if causes else (),
    )  # fmt: skip
    listed = Section(
        "Top causes",
        Table(
            ("CAUSE", "QUEUE", ">FAILURES", ">DEATHS", "LAST", "BY DAY"),
            [
                (_text(each), each.queue, number(each.n), number(each.deaths), minute(each.last), Trend(each.by_day))
                for each in causes
            ],
            ("BY DAY",),
        ),
        "; ".join(filter(None, (
            more(len(causes), report.total, "cause", "failures"),
            "messages with different numbers and ids are one cause",
        ))),
        [
            Plot("bars", "Top causes", "failures", [f"{each.queue}: {_text(each)}" for each in few],
                 {"failures": [each.n for each in few]}),
        ] if causes else (),
    )  # fmt: skip
    examples = Section(
        "Examples",
        Table(
            ("QUEUE", "KINDS", "FIRST", "JID", "MESSAGE"),
            [
                (each.queue, ", ".join(each.kinds), minute(each.first), each.example_jid, each.example_message)
                for each in causes
            ],
            ("KINDS", "FIRST"),
        ),
        "the first failure of each cause on its newest day; crossdock job show JID has all that is still there",
    )
    return Page("Failures", facts, [by_queue, listed, examples])


def _text(each: Cause) -> str:
    if not each.cause or each.cause == _DIGITS.sub("N", each.group):
        return each.group or "''"
    return each.cause if each.cause.startswith(each.group) else f"{each.group}: {each.cause}"


# slow


def slow_page(report: Slow, facts: list[str]) -> Page:
    few = report.kinds[:BARS]
    kinds = Section(
        "Slowest kinds",
        Table(
            ("QUEUE", "KIND", ">RUNS", *SPREAD_HEADS, ">IN ALL"),
            [(kind.queue, kind.kind, *spread(kind.times.run), lasting(kind.run_s)) for kind in report.kinds],
            (">P99", ">MAX"),
        ),
        more(len(report.kinds), report.kinds_total, "kind", "time at the 95th percentile") or PERCENTILES,
        [
            Plot(
                "bars", title, "time", [f"{kind.kind or chr(39) * 2} in {kind.queue}" for kind in few], {"time": values}
            )
            for title, values in (
                ("95th percentile of runs", [kind.times.run.p95 for kind in few]),
                ("All runs together", [max(kind.run_s, 0.0) for kind in few]),
            )
        ],
    )
    flows = Section(
        "Flows by their longest way",
        Table(
            ("FLOW", ">JOBS", ">DEPTH", ">DONE", ">FAILED", ">OPEN", ">LONGEST WAY", ">RUNS", ">TOOK"),
            [
                (flow.name or flow.jid, *map(number, (flow.jobs, flow.depth, flow.succeeded, flow.failed, flow.open)),
                 lasting(flow.critical_s), lasting(flow.run_s), lasting(flow.elapsed_s))
                for flow in report.flows
            ],
            (">DEPTH", ">OPEN"),
        ),
        "jobs connected by dependencies, batches and callbacks; no number of workers makes a flow shorter than its "
        "longest way",
    )  # fmt: skip
    longest = "one row per lease that ended in these days"
    runs = Section("Longest runs", _attempts(report.runs), longest)
    waits = Section("Longest waits", _attempts(report.waits), longest)
    return Page("Slow", facts, [kinds, runs, waits, *([flows] if report.flows else [])])


def _attempts(rows: list[Attempt]) -> Table:
    return Table(
        ("JID", "QUEUE", "KIND", ">TRY", ">WAIT", ">RUN", "OUTCOME", "ENDED", "WORKER"),
        [
            (row.jid, row.queue, row.kind, number(row.attempt), lasting(row.wait_s), lasting(row.run_s), row.outcome,
             minute(row.closed_at), row.worker)
            for row in rows
        ],
        ("WORKER", ">TRY", "ENDED", "OUTCOME"),
    )  # fmt: skip


# workers


_HOUR_S: Final = 3_600
_OUTCOMES: Final = (">ENDED", ">WELL", ">FAILED", ">OTHER")
_ABOUT: Final = (
    "USE is the busy share of the HOURS in which a worker had work, PEAK that of its busiest hour; over 100 % for "
    "workers with several threads. FAILED includes expired leases, OTHER jobs that were returned, moved or removed"
)


def workers_page(report: Workers, facts: list[str]) -> Page:
    few = report.workers[:BARS]
    fleet = len(report.servers) > 1
    names = [_name(each.worker, each.server if fleet else each.protocol) for each in few]
    outcomes = {
        "well": [worker.succeeded for worker in few],
        "failed": [worker.spent for worker in few],
        "other": [worker.other for worker in few],
    }
    listed = Section(
        "Busy time and outcomes",
        Table(
            ("WORKER", *(("SERVER",) if fleet else ()), ">BUSY", ">HOURS", ">USE", ">PEAK", *_OUTCOMES, "BY DAY"),
            [
                (worker.worker or "''", *((worker.server,) if fleet else ()), lasting(worker.busy_s),
                 number(worker.hours), share(worker.utilisation), share(worker.peak),
                 *map(number, (worker.attempts, worker.succeeded, worker.spent, worker.other)),
                 Trend(worker.busy_by_day))
                for worker in report.workers
            ],
            (">OTHER", ">PEAK", "BY DAY", ">WELL"),
        ),
        "; ".join(filter(None, (more(len(report.workers), report.total, "worker", "busy time"), _ABOUT))),
        [
            Plot("lines", "Busy threads, mean of each hour", "threads",
                 [hour for hour, _ in report.hours],
                 {"busy": [busy / _HOUR_S for _, busy in report.hours]}),
            Plot("bars", "Use of their hours", "part of its hours", names, {"use": [each.utilisation for each in few]}),
            Plot("bars", "Attempts by outcome", "jobs", names, outcomes),
        ] if few else (),
    )  # fmt: skip
    protocols = Section(
        "Protocols",
        Table(
            ("PROTOCOL", ">WORKERS", ">BUSY", *_OUTCOMES),
            [
                (each.protocol, number(each.workers), lasting(each.busy_s),
                 *map(number, (each.attempts, each.succeeded, each.spent, each.other)))
                for each in report.protocols
            ],
        ),
    )  # fmt: skip
    return Page("Workers", facts, [listed, protocols])


def _name(worker: str, of: str) -> str:
    return f"{worker or chr(39) * 2} ({of})"
