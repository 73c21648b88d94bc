"""The statistics agree: what Spark makes of the lake is what the engine tells its qless clients."""

from collections import Counter

from crossdock.engine.records.stats import Stats
from crossdock.model.states import OVER
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.run import run
from tests.pipeline.agreeing import assert_live, seconds
from tests.pipeline.conftest import Grown
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import Elsewhere, work
from tests.pipeline.pictures import rows
from tests.support.all_protocols import AllProtocols, InProcess


def test_a_mixed_load_through_all_protocols_agrees_with_the_live_statistics(grown: Grown) -> None:
    stats = grown.load.all_protocols.dispatcher.state.stats
    assert_live(stats, grown.tables)
    pages = [page for days in stats.days.values() for page in days.values()]
    failures, failed, retries = (
        sum(getattr(page, name) for page in pages) for name in ("failures", "failed", "retries")
    )
    assert failures > 10 and retries > 0 and 0 < failed < failures and len(pages) > 9, "the load was a mixed one"


def test_a_queue_s_depth_is_what_waits_there(grown: Grown) -> None:
    jobs = grown.load.all_protocols.dispatcher.state.jobs.values()
    live = Counter(job.queue for job in jobs if job.state not in OVER)
    by_hour = sorted(rows(grown.tables, "forecast"), key=lambda row: (row["flush_epoch"], row["hour"]))
    assert +Counter({row["queue"]: row["depth"] for row in by_hour}) == live, "in its last hour"
    assert min(row["depth"] for row in by_hour) >= 0
    assert live.total() > 3 and any(job.state in OVER for job in jobs)


def test_callers_ahead_and_histories_that_change(works: PipelineContext) -> None:
    """A caller a week ahead takes the histogram of its queue, one a month ahead its pages. A longer history brings
    nothing back, and a flush makes it the usual one."""
    all_protocols, lake, seen = AllProtocols(), Lake(works.lake), 0
    peer, ahead = (
        all_protocols.qless(),
        Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"])),
    )

    def follow(flush_epoch: int = 0) -> Stats:
        nonlocal seen
        lake.add(all_protocols.dispatcher.events[seen:])
        seen = len(all_protocols.dispatcher.events)
        run(works)
        stats = all_protocols.dispatcher.state.stats
        assert_live(stats, works.tables_folder, flush_epoch)
        return stats

    for _ in range(4):
        work(peer, "week", "month", "calm")
        all_protocols.dispatcher.advance(86_400)
    for queue, days in (("week", 8), ("month", 31)):
        ahead.hours = days * 24.0
        work(ahead, queue)
    work(peer, "week", "month", "calm")
    stats = follow()
    assert {queue: len(days) for queue, days in stats.days.items()} == {"week": 6, "month": 1, "calm": 5}
    assert sum(bool(page.run.histogram) for page in stats.days["week"].values()) == 1
    peer.call("config.set", "stats-history", 3)
    peer.call("config.set", "stats-history", 300)
    peer.call("config.set", "histogram-history", 300)
    late = Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"]))
    late.hours = -4 * 24.0
    work(late, "calm", "week")
    assert {queue: len(days) for queue, days in follow().days.items()} == {"week": 1, "month": 1, "calm": 3}
    all_protocols.faktory().call("FLUSH")
    work(peer, "calm")
    all_protocols.dispatcher.advance(40 * 86_400)
    work(peer, "calm")
    assert len(follow(1).days["calm"]) == 1
    lake.close()


def test_failed_is_below_0_where_the_live_statistics_are(works: PipelineContext) -> None:
    """A caller whose clock is behind fails a job; another puts it into another queue, where nothing happened that day
    (docs/explain/pipeline.md)."""
    all_protocols, lake = AllProtocols(), Lake(works.lake)
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
    run(works)
    live = {
        (queue, day): page.failed
        for queue, days in all_protocols.dispatcher.state.stats.days.items()
        for day, page in days.items()
    }
    assert (min(live.values()), max(live.values())) == (-1, 1)
    found = {(row["queue"], seconds(row["date"])): row["failed"] for row in rows(works.tables_folder, "daily")}
    assert found == live
