"""The statistics agree (issue: |Δmean| ≤ 1e-9·max(|mean|, 1e-6), |Δvariance| ≤ 1e-9·max(variance, mean²)): what Spark
makes of the lake is what the engine tells its qless clients."""

import datetime as dt
from collections import Counter
from typing import Any

from crossdock.engine.stats import Moments, QueueDay
from crossdock.model.states import OVER
from crossdock.pipeline.run import run
from crossdock.pipeline.works import Works
from tests.pipeline.conftest import Grown
from tests.pipeline.lakes import EPOCH, Lake
from tests.pipeline.loads import Elsewhere
from tests.pipeline.pictures import rows
from tests.support.floor import Floor, InProcess


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


def seconds(date: dt.date) -> int:
    return (date - EPOCH) // dt.timedelta(seconds=1)


def test_a_mixed_load_through_all_doors(grown: Grown) -> None:
    live = grown.load.floor.desk.memory.stats.days
    pages = {(queue, day): page for queue, days in live.items() for day, page in days.items()}
    told: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows(grown.tables, "daily"):
        told.setdefault((row["queue"], seconds(row["date"])), []).append(row)
    assert told.keys() == pages.keys(), "no page is missing, and none too many"
    for key, page in pages.items():
        assert_page(page, told[key])
    failures, failed, retries = (
        sum(getattr(page, name) for page in pages.values()) for name in ("failures", "failed", "retries")
    )
    assert failures > 10 and retries > 0 and 0 < failed < failures and len(pages) > 9, "the load was a mixed one"


def test_the_histogram_is_the_engines(grown: Grown) -> None:
    live = grown.load.floor.desk.memory.stats.days
    histograms: dict[tuple[str, int, str], Counter[int]] = {}
    for row in rows(grown.tables, "histogram"):
        page_of = (row["queue"], seconds(row["date"]), row["event"])
        histograms.setdefault(page_of, Counter())[row["fine"]] += row["n"]
    expected = {
        (queue, day, event): Counter(moments.histogram)
        for queue, days in live.items()
        for day, page in days.items()
        for event, moments in (("wait", page.wait), ("run", page.run))
        if moments.histogram
    }
    assert histograms == expected


def test_a_queue_s_depth_is_what_waits_there(grown: Grown) -> None:
    jobs = grown.load.floor.desk.memory.jobs.values()
    live = Counter(job.queue for job in jobs if job.state not in OVER)
    by_hour = sorted(rows(grown.tables, "forecast"), key=lambda row: (row["era"], row["hour"]))
    assert +Counter({row["queue"]: row["depth"] for row in by_hour}) == live, "in its last hour"
    assert min(row["depth"] for row in by_hour) >= 0
    assert live.total() > 3 and any(job.state in OVER for job in jobs)


def test_failed_is_below_0_where_the_live_statistics_are(works: Works) -> None:
    """A caller whose clock is behind fails a job; another puts it into another queue, where nothing happened that day
    (docs/explain/pipeline.md)."""
    floor, lake = Floor(), Lake(works.lake)
    behind, peer = Elsewhere(InProcess(floor.desk, floor.doors["redis"])), floor.qless()
    behind.hours = -40.0
    jid = behind.push("mail", {})
    assert behind.fetch("mail") is not None
    behind.call("fail", jid, behind.name, "oops", "no luck")
    peer.call("put", peer.name, "billing", jid, "Mail", "{}", 0)
    lake.add(floor.desk.events)
    lake.close()
    run(works)
    live = {
        (queue, day): page.failed for queue, days in floor.desk.memory.stats.days.items() for day, page in days.items()
    }
    assert (min(live.values()), max(live.values())) == (-1, 1)
    found = {(row["queue"], seconds(row["date"])): row["failed"] for row in rows(works.tables_folder, "daily")}
    assert found == live
