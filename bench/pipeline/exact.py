"""Are the tables right: counts, moments and percentiles of `daily` against DuckDB's over the same events."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
from deltalake import DeltaTable

_TRUTH: Final = """
    select date '1970-01-01' + booked_day::int as date, booked_queue as queue, kind,
        count(*) as n, avg({value}) as mean, coalesce(var_samp({value}), 0) as variance,
        quantile_disc({value}, [0.5, 0.95, 0.99]) as points
    from read_parquet($files) where booked_{event} group by all
"""
_APART: Final = """
    select count(*) filter (where t.n is distinct from d.{event}_total) as wrong,
        max(abs(t.mean - d.{event}_mean) / greatest(abs(t.mean), 1e-6)) as mean,
        max(abs(t.variance - d.{event}_variance) / greatest(t.variance, t.mean * t.mean)) as variance,
        max(greatest(abs(d.{event}_p50 / t.points[1] - 1), abs(d.{event}_p95 / t.points[2] - 1),
            abs(d.{event}_p99 / t.points[3] - 1))) as points
    from truth t full join (select * from daily where {event}_total > 0) d using (date, queue, kind)
"""


class Apart(NamedTuple):
    """How far the tables are from the truth, at most."""

    wrong: int  #: pages whose count is another one
    mean: float
    variance: float
    percentile: float


def apart(files: Sequence[str], tables: Path) -> Apart:
    found = []
    with duckdb.connect() as duck:
        duck.register("daily", duck.read_parquet(DeltaTable(tables / "daily").file_uris(), hive_partitioning=True))
        for event in ("wait", "run"):
            truth = _TRUTH.format(event=event, value=f"{event}_s")
            duck.execute(f"create or replace temp table truth as {truth}", {"files": list(files)})
            found += duck.execute(_APART.format(event=event)).fetchall()
    wrong, mean, variance, points = zip(*found, strict=True)
    return Apart(sum(wrong), max(mean), max(variance), max(points))
