"""The tables of Spark agree with the statistics that qless clients receive (counts and histogram exactly,
|Δmean| ≤ 1e-9·max(|mean|, 1e-6), |Δvariance| ≤ 1e-9·max(variance, mean²))."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

from crossdock.engine.records.stats import Moments, QueueDay, Stats
from tests.pipeline.lakes import EPOCH
from tests.pipeline.pictures import rows


def together(parts: list[tuple[int, float, float]]) -> tuple[int, float, float]:
    """Merge the kinds of one queue by Chan's formula."""
    n, mean, m2 = 0, 0.0, 0.0
    for other_n, other_mean, other_m2 in parts:
        if other_n:
            whole = n + other_n
            apart = other_mean - mean
            m2 += other_m2 + apart * apart * n * other_n / whole
            mean += apart * other_n / whole
            n = whole
    return n, mean, m2


def assert_live(stats: Stats, tables: Path, flush_epoch: int | None = None, *, subset: bool = False) -> None:
    """Check that the tables have the pages of the live statistics: exactly these, or also pages that the server has
    deleted, if `subset` is set."""
    daily = [row for row in rows(tables, "daily") if is_booked(row)]
    histogram = [row for row in rows(tables, "histogram") if row["what"] != "total"]
    pages = {(queue, day): page for queue, days in stats.days.items() for day, page in days.items()}
    told: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in daily:
        if flush_epoch is None or row["flush_epoch"] == flush_epoch:
            told.setdefault((row["queue"], seconds(row["date"])), []).append(row)
    assert told.keys() >= pages.keys() and (subset or told.keys() == pages.keys())
    for key, page in pages.items():
        assert_page(page, told[key])
    buckets: dict[tuple[str, int, str], Counter[int]] = {}
    for row in histogram:
        if flush_epoch is None or row["flush_epoch"] == flush_epoch:
            of = (row["queue"], seconds(row["date"]), row["what"])
            buckets.setdefault(of, Counter())[row["fine"]] += row["n"]
    live = {
        (*key, event): Counter(moments.histogram)
        for key, page in pages.items()
        for event, moments in (("wait", page.wait), ("run", page.run))
        if moments.histogram
    }
    assert {key: buckets.get(key) for key in live} == live if subset else buckets == live


def is_booked(row: dict[str, Any]) -> bool:
    """Whether the engine has booked anything of this row. Counts of other events make rows too."""
    names = ("wait_n", "run_n", "booked_failures", "booked_failed", "booked_retries")
    return any(row[name] for name in names)


def assert_page(live: QueueDay, found: list[dict[str, Any]]) -> None:
    counts = {name: sum(row[f"booked_{name}"] for row in found) for name in ("failures", "failed", "retries")}
    assert counts == {"failures": live.failures, "failed": live.failed, "retries": live.retries}
    assert_moments(live.wait, found, "wait")
    assert_moments(live.run, found, "run")


def assert_moments(live: Moments, found: list[dict[str, Any]], what: str) -> None:
    n, mean, vk = together([(row[f"{what}_n"], row[f"{what}_mean"], row[f"{what}_m2"]) for row in found])
    assert n == live.n
    assert abs(mean - live.mean) <= 1e-9 * max(abs(live.mean), 1e-6)
    if n > 1:
        variance = live.vk / (n - 1)
        assert abs(vk / (n - 1) - variance) <= 1e-9 * max(variance, live.mean**2)


def seconds(date: dt.date) -> int:
    return (date - EPOCH) // dt.timedelta(seconds=1)
