"""What Spark makes of the lake is what the engine tells its qless clients (issue: counts and histogram exactly,
|Δmean| ≤ 1e-9·max(|mean|, 1e-6), |Δvariance| ≤ 1e-9·max(variance, mean²))."""

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

from crossdock.engine.records.stats import Moments, QueueDay, Stats
from tests.pipeline.lakes import EPOCH
from tests.pipeline.pictures import rows


def together(parts: list[tuple[int, float, float]]) -> tuple[int, float, float]:
    """Kinds of one queue, by Chan's formula."""
    n, mean, m2 = 0, 0.0, 0.0
    for other_n, other_mean, other_m2 in parts:
        if other_n:
            whole = n + other_n
            apart = other_mean - mean
            m2 += other_m2 + apart * apart * n * other_n / whole
            mean += apart * other_n / whole
            n = whole
    return n, mean, m2


def assert_live(stats: Stats, tables: Path, flush_epoch: int | None = None) -> None:
    """No page is missing, none too many, and each is the same."""
    daily, histogram = rows(tables, "daily"), rows(tables, "histogram")
    pages = {(queue, day): page for queue, days in stats.days.items() for day, page in days.items()}
    told: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in daily:
        if flush_epoch is None or row["flush_epoch"] == flush_epoch:
            told.setdefault((row["queue"], seconds(row["date"])), []).append(row)
    assert told.keys() == pages.keys()
    for key, page in pages.items():
        assert_page(page, told[key])
    buckets: dict[tuple[str, int, str], Counter[int]] = {}
    for row in histogram:
        if flush_epoch is None or row["flush_epoch"] == flush_epoch:
            of = (row["queue"], seconds(row["date"]), row["event"])
            buckets.setdefault(of, Counter())[row["fine"]] += row["n"]
    assert buckets == {
        (*key, event): Counter(moments.histogram)
        for key, page in pages.items()
        for event, moments in (("wait", page.wait), ("run", page.run))
        if moments.histogram
    }


def assert_page(live: QueueDay, found: list[dict[str, Any]]) -> None:
    counts = Counter({name: sum(row[name] for row in found) for name in ("failures", "failed", "retries")})
    assert counts == {"failures": live.failures, "failed": live.failed, "retries": live.retries}
    assert_moments(live.wait, found, "wait")
    assert_moments(live.run, found, "run")


def assert_moments(live: Moments, found: list[dict[str, Any]], what: str) -> None:
    n, mean, vk = together([(row[f"{what}_total"], row[f"{what}_mean"], row[f"{what}_vk"]) for row in found])
    assert n == live.n
    assert abs(mean - live.mean) <= 1e-9 * max(abs(live.mean), 1e-6)
    if n > 1:
        variance = live.vk / (n - 1)
        assert abs(vk / (n - 1) - variance) <= 1e-9 * max(variance, live.mean**2)


def seconds(date: dt.date) -> int:
    return (date - EPOCH) // dt.timedelta(seconds=1)
