"""The statistics agree (issue: |Δmean| ≤ 1e-9·max(|mean|, 1e-6), |Δvariance| ≤ 1e-9·max(variance, mean²)): what Spark
makes of the lake is what the engine tells its qless clients."""

import datetime as dt
from collections import Counter
from typing import Any

import pytest

from crossdock.engine.stats import Moments, QueueDay
from crossdock.pipeline.run import run
from crossdock.pipeline.works import Works
from tests.pipeline.lakes import EPOCH, Lake
from tests.pipeline.loads import MixedLoad
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


def assert_moments(live: Moments, found: list[dict[str, Any]], what: str) -> None:
    n, mean, vk = together([(row[f"{what}_total"], row[f"{what}_mean"], row[f"{what}_vk"]) for row in found])
    assert n == live.n
    assert abs(mean - live.mean) <= 1e-9 * max(abs(live.mean), 1e-6)
    if n > 1:
        variance = live.vk / (n - 1)
        assert abs(vk / (n - 1) - variance) <= 1e-9 * max(variance, live.mean**2)


def assert_page(live: QueueDay, found: list[dict[str, Any]]) -> None:
    counts = Counter({name: sum(row[name] for row in found) for name in ("failures", "failed", "retries")})
    assert counts == {"failures": live.failures, "failed": live.failed, "retries": live.retries}
    assert_moments(live.wait, found, "wait")
    assert_moments(live.run, found, "run")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_mixed_load_through_all_doors(works: Works, seed: int) -> None:
    load, lake, written = MixedLoad(seed), Lake(works.events_folder.parent), 0
    for _ in range(3):
        load.go(400)
        for first in range(written, len(load.events), 500):
            lake.add(load.events[first : first + 500])
        written = len(load.events)
        run(works)
    live = load.floor.desk.memory.stats.days
    pages = {(queue, day): page for queue, days in live.items() for day, page in days.items()}
    daily = rows(works.tables_folder, "daily")
    told: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in daily:
        told.setdefault((row["queue"], (row["date"] - EPOCH) // dt.timedelta(seconds=1)), []).append(row)
    assert told.keys() == pages.keys(), "no page is missing, and none too many"
    for key, page in pages.items():
        assert_page(page, told[key])
    total = QueueDay()
    for page in pages.values():
        total.failures += page.failures
        total.failed += page.failed
        total.retries += page.retries
    assert total.failures > 10 and total.retries > 0 and total.failed != total.failures, "the load was a mixed one"

    histograms: dict[tuple[str, int, str], Counter[int]] = {}
    for row in rows(works.tables_folder, "histogram"):
        key3 = (row["queue"], (row["date"] - EPOCH) // dt.timedelta(seconds=1), row["event"])
        histograms.setdefault(key3, Counter())[row["fine"]] += row["n"]
    for (queue, day), page in pages.items():
        for event, moments in (("wait", page.wait), ("run", page.run)):
            assert histograms.get((queue, day, event), Counter()) == moments.histogram, (queue, day, event)
