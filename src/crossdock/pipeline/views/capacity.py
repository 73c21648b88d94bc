"""Table `capacity`: the busiest hour of each queue and day, and the workers that its load needs.

Workers have to run every attempt, so the load counts attempts, not jobs. `queueing.py` turns it into a number of
workers. Arrivals are assumed to be random (Poisson); the report can assume others.
"""

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.log_tail import all_dates
from crossdock.pipeline.objectives import TARGET_WAIT_S, Objective
from crossdock.pipeline.queueing import workers_needed
from crossdock.pipeline.schemas.appended import COUNTS_DAY, HIST_DAY, WORK
from crossdock.pipeline.schemas.views import CAPACITY, FORECAST
from crossdock.pipeline.sql import engine_of, on_dates, rows_of
from crossdock.pipeline.views.slo import changed

_SOURCES: Final = (FORECAST, COUNTS_DAY, HIST_DAY, WORK)

_QUERY: Final = """
WITH hours AS (
    SELECT date, server, queue, hour, arrival_rate,
        row_number() OVER (PARTITION BY date, server, queue ORDER BY arrival_rate DESC, hour) AS place
    FROM forecast WHERE {dates}
), ended AS (
    SELECT date, server, queue, sum(CASE WHEN outcome IS NOT NULL THEN n ELSE 0 END) AS attempts,
        sum(CASE WHEN event IN ('succeeded', 'advanced', 'buried')
            OR (event = 'failed' AND state IN ('complete', 'failed', 'dead', 'gone')) THEN n ELSE 0 END) AS jobs,
        sum(run_s) AS busy_s
    FROM counts_day WHERE {dates} GROUP BY date, server, queue
), means AS (
    SELECT date, server, queue, n, mean, m2,
        sum(n * mean) OVER (PARTITION BY date, server, queue)
            / nullif(sum(n) OVER (PARTITION BY date, server, queue), 0) AS middle
    FROM hist_day WHERE {dates} AND what = 'run' AND queue IS NOT NULL
), runs AS (
    SELECT date, server, queue, sum(n) AS n, max(middle) AS mean,
        sum(m2) + sum(n * (mean - middle) * (mean - middle)) AS m2
    FROM means GROUP BY date, server, queue
), seen AS (
    SELECT server, hour, count(DISTINCT coalesce(protocol, '') || ' ' || coalesce(worker, '')) AS workers
    FROM work WHERE {dates} AND (n > 0 OR busy_s > 0) GROUP BY server, hour
)
SELECT hours.date, hours.server, hours.queue, hours.hour AS peak_hour, arrival_rate,
    greatest(CAST(attempts AS DOUBLE) / nullif(jobs, 0), 1.0) AS attempts_per_job,
    busy_s / nullif(attempts, 0) AS run_mean,
    CASE WHEN runs.n > 1 AND runs.mean > 0 THEN runs.m2 / (runs.n - 1) / (runs.mean * runs.mean) END AS run_scv,
    coalesce(workers, 0) AS workers_seen
FROM hours
LEFT JOIN ended ON hours.date = ended.date AND (hours.server IS NOT DISTINCT FROM ended.server)
    AND hours.queue = ended.queue
LEFT JOIN runs ON hours.date = runs.date AND (hours.server IS NOT DISTINCT FROM runs.server)
    AND hours.queue = runs.queue
LEFT JOIN seen ON hours.hour = seen.hour AND (hours.server IS NOT DISTINCT FROM seen.server)
WHERE place = 1
"""


def refresh_capacity(
    tables: Tables, objectives: Sequence[Objective], target_wait_s: float = TARGET_WAIT_S
) -> set[dt.date]:
    """Compute the days again whose sources changed, or all days if the objectives did. Returns them."""
    view = tables[CAPACITY.name]
    handle = view.handle()
    opened, dates, marks = changed(view, handle, [tables[each.name] for each in _SOURCES], objectives)
    if marks is None:
        return dates
    dates &= all_dates(opened[FORECAST.name])  # retention deletes old hours, and what was computed from them stays
    targets = {each.queue: each.start_within_s for each in objectives if each.start_within_s}
    rows = [_needed(row, targets.get(row["queue"], target_wait_s)) for row in _select(opened, dates)]
    made = pa.Table.from_pylist(rows, schema=CAPACITY.arrow)
    view.commit(handle, view.write(made), replaced=view.files(dates, handle), sources=marks)
    return dates


def _select(opened: dict[str, DeltaTable], dates: Collection[dt.date]) -> list[dict[str, Any]]:
    return rows_of(engine_of(opened), _QUERY.format(dates=on_dates(dates))) if dates else []


def _needed(row: dict[str, Any], target_wait_s: float) -> dict[str, Any]:
    """Without at least two successful runs their spread is unknown; 1 is that of random run times."""
    scv = 1.0 if row["run_scv"] is None else row["run_scv"]
    tries = row["attempts_per_job"] or 1.0
    load = needed = None
    if row["run_mean"] is not None and row["arrival_rate"]:
        load = row["arrival_rate"] * tries * row["run_mean"]
        needed = workers_needed(target_wait_s, row["arrival_rate"] * tries, row["run_mean"], scv)
    return {
        **row, "attempts_per_job": tries, "run_scv": scv, "load": load, "target_wait_s": target_wait_s,
        "workers_needed": needed,
    }  # fmt: skip
