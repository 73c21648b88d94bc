"""What is kept, for how long, and in how many files."""

import datetime as dt
from collections import Counter

import pytest

from crossdock.pipeline import retention
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.retention import compact
from crossdock.pipeline.run import run
from tests.pipeline.lakes import EPOCH, Lake
from tests.pipeline.loads import Elsewhere, work
from tests.pipeline.pictures import assert_same, picture, rows
from tests.support.all_protocols import AllProtocols, InProcess


def test_statistics_are_kept_by_queue_as_the_server_keeps_them(works: PipelineContext) -> None:
    all_protocols = AllProtocols()
    lake = Lake(works.lake)
    peer = all_protocols.qless()
    peer.call("config.set", "stats-history", 5)
    peer.call("config.set", "histogram-history", 2)
    peer.push("rests", {})
    got = peer.fetch("rests")
    assert got is not None and peer.succeed(got.ident)
    for _ in range(8):
        peer.push("busy", {})
        got = peer.fetch("busy")
        assert got is not None and peer.succeed(got.ident)
        all_protocols.dispatcher.advance(86_400)
    events = all_protocols.dispatcher.events
    lake.add(events[: len(events) // 2])
    run(works)
    lake.add(events[len(events) // 2 :])
    lake.close()
    run(works)

    live = all_protocols.dispatcher.state.stats.days
    assert {queue: len(days) for queue, days in live.items()} == {"rests": 1, "busy": 5}
    daily = Counter(row["queue"] for row in rows(works.tables_folder, "daily"))
    assert daily == {"rests": 1, "busy": 5}
    with_histogram = {
        (queue, EPOCH + dt.timedelta(seconds=day))
        for queue, days in live.items()
        for day, page in days.items()
        if page.run.histogram
    }
    assert {(row["queue"], row["date"]) for row in rows(works.tables_folder, "histogram")} == with_histogram
    assert len(rows(works.tables_folder, "attempts")) == 9, "attempts are kept as long as the lake"

    facts = works.tables_folder / "facts"
    kept = {(row["queue"], row["date"]) for row in rows(facts, "bookings")}
    assert len(kept) == 6
    rebuild(works)
    assert {(row["queue"], row["date"]) for row in rows(facts, "bookings")} == kept, "events outlive them"


@pytest.mark.parametrize("days", [31, 40])
def test_a_caller_ahead_takes_nothing_from_the_others(works: PipelineContext, days: int) -> None:
    all_protocols, lake = AllProtocols(), Lake(works.lake)
    peer, ahead = (
        all_protocols.qless(),
        Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"])),
    )
    first = peer.push("q", {})
    peer.push("q", {}, depends=f'["{first}"]')
    work(peer, "q", "other")
    all_protocols.dispatcher.advance(86_400)
    work(peer, "q", "other")
    lake.add(all_protocols.dispatcher.events)
    run(works)
    before, written = picture(works.tables_folder), len(all_protocols.dispatcher.events)
    ahead.hours = days * 24.0
    work(ahead, "q")
    lake.add(all_protocols.dispatcher.events[written:])
    lake.expire(1, all_protocols.dispatcher.now.wall)
    lake.close()
    run(works)
    after = picture(works.tables_folder)
    for name in ("attempts", "flows", "failures", "hourly", "workers", "retries", "forecast"):
        assert {row["date"] for row in after[name]} == {row["date"] for row in before[name]}, name
    assert {row["queue"]: row["date"].month for row in after["daily"]} == {"other": 11, "q": 12}


def test_attempts_and_flows_go_with_the_lake_and_settings_stay(works: PipelineContext) -> None:
    """`lake.keep_days` means the same for both: today, and as many days before."""
    all_protocols, lake, written = AllProtocols(), Lake(works.lake), 0
    peer = all_protocols.qless()
    peer.call("config.set", "stats-history", 90)
    for _ in range(3):
        first = peer.push("q", {})
        peer.push("q", {}, depends=f'["{first}"]')
        work(peer, "q")
        lake.add(all_protocols.dispatcher.events[written:])
        written = len(all_protocols.dispatcher.events)
        all_protocols.dispatcher.advance(86_400)
    run(works)
    assert lake.expire(1, all_protocols.dispatcher.now.wall - 86_400) == ["2026-11-15"]
    run(works)
    there = {dt.date(2026, 11, 16), dt.date(2026, 11, 17)}
    assert {row["date"] for row in rows(works.tables_folder, "attempts")} == there
    assert {row["date"] for row in rows(works.tables_folder, "flows")} <= there
    assert len({row["date"] for row in rows(works.tables_folder, "workers")}) == 3
    before = picture(works.tables_folder)
    assert rebuild(works, [dt.date(2026, 11, 15)]).kept == 1
    assert_same(picture(works.tables_folder), before)
    all_protocols.dispatcher.advance(40 * 86_400)
    work(peer, "q")
    lake.add(all_protocols.dispatcher.events[written:])
    lake.close()
    run(works)
    assert len({row["date"] for row in rows(works.tables_folder, "daily")}) == 4, "ninety days are kept"
    assert len({row["date"] for row in rows(works.tables_folder, "workers")}) == 4


def test_many_small_files_become_few_with_the_same_rows(
    works: PipelineContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MANY_FILES", 2)
    all_protocols = AllProtocols()
    lake = Lake(works.lake)
    peer = all_protocols.qless()
    for _ in range(4):
        work(peer, "q")
        lake.add(all_protocols.dispatcher.events)
        all_protocols.dispatcher.events.clear()
        works.prepare()
        assert take_in(works) is not None
    lake.close()
    attempts = works.catalog["attempts"]
    assert len(attempts.files()) == 4
    run(works)
    before = picture(works.tables_folder)
    assert len(attempts.files()) == 1 and len(works.catalog["bookings"].files()) == 1
    assert compact(works) == 0
    assert_same(picture(works.tables_folder), before)
    assert len(before["attempts"]) == 4
    assert run(works).rows == 0
