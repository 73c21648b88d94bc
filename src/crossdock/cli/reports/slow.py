"""The page of report `slow`."""

import datetime as dt

from crossdock.cli.reports.page import Page, Plot, Section, Table
from crossdock.cli.reports.queues import BARS, PERCENTILES, SPREAD_HEADS, more, spread
from crossdock.cli.show import lasting, number
from crossdock.pipeline.reports.slow import Attempt, Slow


def page(told: Slow, facts: list[str]) -> Page:
    few = told.kinds[:BARS]
    kinds = Section(
        "Slowest kinds",
        Table(
            ("QUEUE", "KIND", ">RUNS", *SPREAD_HEADS, ">IN ALL", ">WAIT P95"),
            [
                (kind.queue, kind.kind, *spread(kind.run), lasting(kind.run_s), lasting(kind.wait.p95))
                for kind in told.kinds
            ],
        ),
        more(len(told.kinds), told.kinds_total, "kind", "time at the 95th percentile") or PERCENTILES,
        [
            Plot(
                "bars", title, "time", [f"{kind.kind or chr(39) * 2} in {kind.queue}" for kind in few], {"time": values}
            )
            for title, values in (
                ("95th percentile of runs", [kind.run.p95 for kind in few]),
                ("All runs together", [max(kind.run_s, 0.0) for kind in few]),
            )
        ],
    )
    flows = Section(
        "Flows by their longest way",
        Table(
            ("FIRST JOB", "GROUPS", ">JOBS", ">DEPTH", ">DONE", ">FAILED", ">OPEN", ">LONGEST WAY", ">RUNS", ">TOOK"),
            [
                (flow.jid, ", ".join(flow.groups), *map(number, (flow.jobs, flow.depth, flow.succeeded, flow.failed,
                 flow.open)), lasting(flow.critical_s), lasting(flow.run_s), lasting(flow.elapsed_s))
                for flow in told.flows
            ],
        ),
        "jobs that belong together by needs, batches and callbacks; no number of workers makes one shorter than its "
        "longest way",
    )  # fmt: skip
    longest = "one row a lease that ended in these days"
    runs = Section("Longest runs", _attempts(told.runs), longest)
    waits = Section("Longest waits", _attempts(told.waits), longest)
    return Page("Slow", facts, [kinds, runs, waits, flows])


def _attempts(rows: list[Attempt]) -> Table:
    return Table(
        ("JID", "QUEUE", "KIND", ">TRY", ">WAIT", ">RUN", "OUTCOME", "ENDED", "WORKER"),
        [
            (row.jid, row.queue, row.kind, number(row.attempt), lasting(row.wait_s), lasting(row.run_s), row.outcome,
             _second(row.closed_at), row.worker)
            for row in rows
        ],
    )  # fmt: skip


def _second(at: dt.datetime) -> str:
    return f"{at:%m-%d %H:%M:%S}"
