"""What is kept, for how long, and in how many files."""

import datetime as dt
from collections import Counter

import pytest

from crossdock.pipeline import keeping
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.keeping import compact
from crossdock.pipeline.run import run
from crossdock.pipeline.works import Works
from tests.pipeline.lakes import EPOCH, Lake
from tests.pipeline.pictures import assert_same, picture, rows
from tests.support.floor import Floor


def test_statistics_are_kept_by_queue_as_the_server_keeps_them(works: Works) -> None:
    floor = Floor()
    lake = Lake(works.lake)
    peer = floor.qless()
    peer.call("config.set", "stats-history", 5)
    peer.call("config.set", "histogram-history", 2)
    peer.push("rests", {})
    got = peer.fetch("rests")
    assert got is not None and peer.succeed(got.ident)
    for _ in range(8):
        peer.push("busy", {})
        got = peer.fetch("busy")
        assert got is not None and peer.succeed(got.ident)
        floor.desk.advance(86_400)
    events = floor.desk.events
    lake.add(events[: len(events) // 2])
    run(works)
    lake.add(events[len(events) // 2 :])
    lake.close()
    run(works)

    live = floor.desk.memory.stats.days
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


def test_many_small_files_become_few_with_the_same_rows(works: Works, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MANY_FILES", 2)
    floor = Floor()
    lake = Lake(works.lake)
    peer = floor.qless()
    for _ in range(4):
        peer.push("q", {})
        got = peer.fetch("q")
        assert got is not None and peer.succeed(got.ident)
        lake.add(floor.desk.events)
        floor.desk.events.clear()
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
