"""The page of report `failures`."""

import datetime as dt

from crossdock.cli.render.page import Cell, Page, Plot, Section, Table, Trend
from crossdock.cli.render.queue_pages import BARS, PERCENTILES, SPREAD_HEADS, more, spread
from crossdock.cli.render.tables import lasting, number, share
from crossdock.pipeline.reports.failures import Failures
from crossdock.pipeline.reports.slow import Attempt, Slow
from crossdock.pipeline.reports.workers import Workers


def failures_page(told: Failures, facts: list[str]) -> Page:
    groups = told.groups
    few = groups[:BARS]
    listed = Section(
        "Groups of errors",
        Table(
            ("GROUP", "QUEUE", ">FAILURES", ">JOBS", "FIRST", "LAST", "BY DAY"),
            [
                (_named(group.group), group.queue, number(group.n), number(group.jobs), _minute(group.first),
                 _minute(group.last), Trend(group.by_day))
                for group in groups
            ],
        ),
        "; ".join(filter(None, (
            more(len(groups), told.total, "group", "failures"),
            "the group is what the worker called it, '' if it named none; a job counts once a day",
        ))),
        [
            Plot("columns", "Failures", "failures", [f"{day:%m-%d}" for day in told.days], {"failures": told.by_day}),
            Plot("bars", "Largest groups", "failures", [f"{_named(group.group)} in {group.queue}" for group in few],
                 {"failures": [group.n for group in few]}),
        ] if groups else (),
    )  # fmt: skip
    seen: dict[tuple[str, str, str], tuple[Cell, ...]] = {}
    for group in groups:
        for each in group.examples:
            row = (_named(group.group), group.queue, _minute(each.at), each.jid, each.message)
            seen.setdefault((group.queue, group.group, each.message), row)
    examples = Section(
        "Examples",
        Table(
            ("GROUP", "QUEUE", "AT", "JID", "MESSAGE"),
            list(seen.values()),
        ),
        "different messages of the first jobs of each group on its newest days; crossdock job JID tells all of a job "
        "that is still there",
    )
    return Page("Failures", facts, [listed, examples])


def _named(group: str) -> str:
    return group or "''"


def _minute(at: dt.datetime) -> str:
    return f"{at:%m-%d %H:%M}"


# The page of report `slow`.


def slow_page(told: Slow, facts: list[str]) -> Page:
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


# The page of report `workers`.


_HOUR_S = 3_600
_OUTCOMES = (">ATTEMPTS", ">WELL", ">NOTHING", ">OTHER")
_ABOUT = (
    "USE is the busy part of the HOURS in which a worker had work, PEAK that of its busiest hour; over 100 % for one "
    "with many hands. NOTHING: failed, or the lease ran out"
)


def workers_page(told: Workers, facts: list[str]) -> Page:
    few = told.workers[:BARS]
    names = [_name(worker.worker, worker.door) for worker in few]
    hands = _hands(told)
    outcomes = {
        "well": [worker.succeeded for worker in few],
        "for nothing": [worker.spent for worker in few],
        "other": [worker.other for worker in few],
    }
    listed = Section(
        "Busy time and outcomes",
        Table(
            ("WORKER", "DOOR", ">BUSY", ">HOURS", ">USE", ">PEAK", *_OUTCOMES, "BY DAY"),
            [
                (worker.worker or "''", worker.door, lasting(worker.busy_s), number(worker.hours),
                 share(worker.utilisation), share(worker.peak),
                 *map(number, (worker.attempts, worker.succeeded, worker.spent, worker.other)),
                 Trend(worker.busy_by_day))
                for worker in told.workers
            ],
        ),
        "; ".join(filter(None, (more(len(told.workers), told.total, "worker", "busy time"), _ABOUT))),
        [
            Plot("lines", "Hands at work, mean of each hour", "workers' hands", [label for label, _ in hands],
                 {"busy": [busy for _, busy in hands]}),
            Plot("bars", "Use of their hours", "part of its hours", names, {"use": [each.utilisation for each in few]}),
            Plot("bars", "Attempts and what came of them", "jobs", names, outcomes),
        ] if few else (),
    )  # fmt: skip
    doors = Section(
        "Doors",
        Table(
            ("DOOR", ">WORKERS", ">BUSY", *_OUTCOMES),
            [
                (door.door, number(door.workers), lasting(door.busy_s),
                 *map(number, (door.attempts, door.succeeded, door.spent, door.other)))
                for door in told.doors
            ],
        ),
    )  # fmt: skip
    return Page("Workers", facts, [listed, doors])


def _name(worker: str, door: str) -> str:
    return f"{worker or chr(39) * 2} ({door})"


def _hands(told: Workers) -> list[tuple[str, float]]:
    """Hours in which nobody worked are there as 0."""
    if not told.hours:
        return []
    busy, hour = dict(told.hours), told.hours[0][0]
    # Work that ended on the first day may have begun long before.
    first = dt.datetime(told.days[0].year, told.days[0].month, told.days[0].day, tzinfo=dt.UTC)
    found, hour = [], max(hour, first)
    while hour <= told.hours[-1][0]:
        found.append((f"{hour:%m-%d %H}h", busy.get(hour, 0.0) / _HOUR_S))
        hour += dt.timedelta(hours=1)
    return found
