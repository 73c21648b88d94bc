"""Report `slo`: objectives of queues, and how fast their error budgets burn. Computed exactly, from `attempts`.

An objective allows a share of 1 - ratio of jobs to be late or to die: the error budget. A burn rate of 1 uses it up
exactly by the end of the period; 14.4 uses up a month's budget in two days.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from crossdock.pipeline.objectives import Objective, burn_rate
from crossdock.pipeline.reports.tables import Days, Reader
from crossdock.pipeline.sql import at, quoted

#: Windows of burn rates, in hours.
WINDOWS: Final = {"1h": 1, "6h": 6, "1d": 24, "3d": 72}

#: Burn rates that deserve attention, after Google's SRE workbook: 2 % of a month's budget in an hour, 5 % in six hours,
#: 10 % in three days.
_FAST: Final = {"1h": 14.4, "6h": 6.0}
_SLOW: Final = {"3d": 1.0}

_DIED: Final = "outcome IN ('failed', 'lost') AND state IN ('complete', 'failed', 'dead', 'gone')"
_ENDED: Final = f"((outcome = 'succeeded' AND total_s IS NOT NULL) OR ({_DIED}))"


class Count(msgspec.Struct):
    """How many were in time. `good` of `of` is the ratio."""

    good: int = 0
    of: int = 0
    ratio: float | None = None
    burn_rate: float | None = None


class Met(msgspec.Struct):
    queue: str
    what: str  #: done: from push to success; start: from ready to leased
    within_s: float
    target: float
    whole: Count  #: all days of the report
    died: int  #: of `done`: jobs that failed and were not tried again
    budget_left: float | None  #: share of the error budget of these days; negative: overspent
    windows: dict[str, Count]  #: the last hours before `end`
    by_day: list[float | None]  #: ratios
    state: str  #: ok, slow burn, fast burn, missed (this period's ratio is below the target), or no jobs


class Slo(msgspec.Struct):
    days: list[dt.date]
    end: dt.datetime | None  #: newest event: the end of all windows
    objectives: list[Met]


def slo(reader: Reader, objectives: Sequence[Objective], queue: str | None = None) -> Slo:
    end = reader.observed.end if reader.observed else None
    found = []
    for each in objectives:
        if end is None or queue not in (None, each.queue):
            continue
        if each.done_within_s is not None:
            good = f"outcome = 'succeeded' AND total_s <= {float(each.done_within_s)!r}"
            found.append(_met(reader, each, "done", each.done_within_s, _ENDED, good))
        if each.start_within_s is not None:
            good = f"wait_s <= {float(each.start_within_s)!r}"
            found.append(_met(reader, each, "start", each.start_within_s, "wait_s IS NOT NULL", good))
    return Slo(reader.seen_days, end, found)


def _met(reader: Reader, objective: Objective, what: str, within_s: float, counted: str, good: str) -> Met:
    assert reader.observed is not None
    end = reader.observed.end
    time = "closed_at" if what == "done" else "leased_at"
    longest = end - dt.timedelta(hours=max(WINDOWS.values()))
    days = Days(min(reader.days.first, longest.date()), reader.days.last)
    sums = [f"count(CASE WHEN {good} THEN 1 END) AS good", "count(*) AS n"]
    for name, hours in WINDOWS.items():
        since = f"{time} > {at(end - dt.timedelta(hours=hours))}"
        sums.append(f"count(CASE WHEN {since} THEN 1 END) AS n_{name}")
        sums.append(f"count(CASE WHEN {since} AND {good} THEN 1 END) AS good_{name}")
    where = reader.here(f"queue = {quoted(objective.queue)} AND {counted}", days)
    query = (
        f"SELECT date, {', '.join(sums)}, count(CASE WHEN {_DIED} THEN 1 END) AS died "
        f"FROM attempts WHERE {where} GROUP BY date"
    )
    rows = {row["date"]: row for row in reader.rows("attempts", query)}
    target = objective.ratio
    inside = [row for date, row in rows.items() if date >= reader.days.first]
    whole = _count(sum(row["good"] for row in inside), sum(row["n"] for row in inside), target)
    windows = {
        name: _count(sum(row[f"good_{name}"] for row in rows.values()), sum(row[f"n_{name}"] for row in rows.values()),
                     target)
        for name in WINDOWS
    }  # fmt: skip
    return Met(
        queue=objective.queue,
        what=what,
        within_s=within_s,
        target=target,
        whole=whole,
        died=sum(row["died"] for row in inside) if what == "done" else 0,
        budget_left=None if whole.burn_rate is None else 1 - whole.burn_rate,
        windows=windows,
        by_day=[_ratio(rows.get(day)) for day in reader.seen_days],
        state=_state(whole, windows, target),
    )


def _count(good: int, of: int, target: float) -> Count:
    return Count(good, of, good / of if of else None, burn_rate(good, of, target))


def _ratio(row: dict[str, Any] | None) -> float | None:
    return row["good"] / row["n"] if row and row["n"] else None


def _state(whole: Count, windows: dict[str, Count], target: float) -> str:
    def burns(limits: dict[str, float]) -> bool:
        return any((windows[name].burn_rate or 0.0) >= limit for name, limit in limits.items())

    if not whole.of:
        return "no jobs"
    if burns(_FAST):
        return "fast burn"
    if burns(_SLOW):
        return "slow burn"
    return "missed" if whole.ratio is not None and whole.ratio < target else "ok"
