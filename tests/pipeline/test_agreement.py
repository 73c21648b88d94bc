"""The tables agree with the statistics that qless clients receive, and with the live queues."""

from collections import Counter

import pytest

from crossdock.model.events import Flushed
from crossdock.model.states import OVER
from tests.pipeline.agreeing import assert_live, is_booked, seconds
from tests.pipeline.conftest import Grown
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import Elsewhere
from tests.pipeline.pictures import assert_same, picture, rows
from tests.pipeline.pipelines import Pipeline
from tests.pipeline.wild import WildLoad
from tests.support.all_protocols import AllProtocols, InProcess


def test_a_mixed_load_through_all_protocols_agrees_with_the_live_statistics(grown: Grown) -> None:
    stats = grown.load.all_protocols.dispatcher.state.stats
    assert_live(stats, grown.tables)
    pages = [page for days in stats.days.values() for page in days.values()]
    failures, failed, retries = (
        sum(getattr(page, name) for page in pages) for name in ("failures", "failed", "retries")
    )
    assert failures > 10 and retries > 0 and 0 < failed < failures and len(pages) > 9, (
        "the load has many kinds of event"
    )


def test_the_depth_of_a_queue_is_the_number_of_waiting_jobs(grown: Grown) -> None:
    jobs = grown.load.all_protocols.dispatcher.state.jobs.values()
    live = Counter(job.queue for job in jobs if job.state not in OVER)
    depths = rows(grown.tables, "depths")
    newest = max(row["date"] for row in depths)
    assert +Counter({row["queue"]: row["depth"] for row in depths if row["date"] == newest}) == live
    assert min(row["depth"] for row in rows(grown.tables, "forecast")) >= 0
    assert live.total() > 3 and any(job.state in OVER for job in jobs)


def test_failures_are_counted_for_every_protocol(grown: Grown) -> None:
    failed = {row["protocol"] for row in rows(grown.tables, "counts_day") if row["event"] == "failed"}
    assert failed >= {"qless", "workq", "masenko", "faktory"}
    daily = rows(grown.tables, "daily")
    assert sum(row["died"] for row in daily) > 0 and sum(row["retried"] for row in daily) > 0


def test_failed_is_negative_where_the_live_statistics_are(pipeline: Pipeline) -> None:
    """A client whose clock is behind fails a job. Another puts it into another queue, which has no events on that day
    (docs/explain/pipeline.md)."""
    all_protocols, lake = AllProtocols(), Lake(pipeline.lake)
    behind, peer = (
        Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"])),
        all_protocols.qless(),
    )
    behind.hours = -40.0
    jid = behind.push("mail", {})
    assert behind.fetch("mail") is not None
    behind.call("fail", jid, behind.name, "oops", "no luck")
    peer.call("put", peer.name, "billing", jid, "Mail", "{}", 0)
    lake.add(all_protocols.dispatcher.events)
    lake.close()
    pipeline.run()
    live = {
        (queue, day): page.failed
        for queue, days in all_protocols.dispatcher.state.stats.days.items()
        for day, page in days.items()
    }
    assert (min(live.values()), max(live.values())) == (-1, 1)
    daily = [row for row in rows(pipeline.folder, "daily") if is_booked(row)]
    assert {(row["queue"], seconds(row["date"])): row["booked_failed"] for row in daily} == live


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3])
def test_the_tables_agree_under_a_wild_load(pipeline: Pipeline, seed: int) -> None:
    """Edge cases of all protocols, flushes and merged files; and a rebuild changes nothing. The retention of live
    statistics is a setting of clients, and does not concern the tables."""
    load, lake, written = WildLoad(seed), Lake(pipeline.lake), 0
    draw = load.random.random
    for _ in range(2):
        load.go(150)
        if draw() < 0.3:
            load.flush()
            load.go(50)
        lake.cut(load.events[written:], 150)
        written = len(load.events)
        lake.compact()
        pipeline.run()
        flush_epoch = sum(type(event) is Flushed for event in load.events)
        assert_live(load.all_protocols.dispatcher.state.stats, pipeline.folder, flush_epoch, subset=True)
    before = picture(pipeline.folder)
    pipeline.rebuild()
    assert_same(picture(pipeline.folder), before)
    assert all(before[name] for name in ("daily", "histogram", "hourly", "forecast", "attempts", "workers", "flows"))
    lake.close()
