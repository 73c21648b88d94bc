"""The page of report `workers`."""

import datetime as dt

from crossdock.cli.reports.page import Page, Plot, Section, Table, Trend
from crossdock.cli.reports.queues import BARS, more
from crossdock.cli.show import lasting, number, share
from crossdock.pipeline.reports.workers import Workers

_HOUR_S = 3_600
_OUTCOMES = (">ATTEMPTS", ">WELL", ">NOTHING", ">OTHER")
_ABOUT = (
    "USE is the busy part of the HOURS in which a worker had work, PEAK that of its busiest hour; over 100 % for one "
    "with many hands. NOTHING: failed, or the lease ran out"
)


def page(told: Workers, facts: list[str]) -> Page:
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
