"""Which events of the lakes are in the next batch, and which are lost. None of these tests needs Spark."""

import datetime as dt
from pathlib import Path

import pytest

from crossdock.lake import checkpoints
from crossdock.lake.commits import Commits
from crossdock.lake.store import store_of
from crossdock.lake.table import Lake as Opened
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.planning import Lost, Range, batch, lost, repairs
from crossdock.pipeline.schemas.appended import ATTEMPTS, COUNTS_HOUR, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.tables import Position
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import work
from tests.support.all_protocols import AllProtocols

DAY = 86_400.0


class Grower:
    """A lake that gets one journal entry of three events at a time."""

    def __init__(self, folder: Path) -> None:
        self._protocols = AllProtocols()
        self._peer = self._protocols.faktory()
        self._lake = Lake(folder)
        self._written = 0
        self.folder = folder

    @property
    def now(self) -> float:
        return self._protocols.dispatcher.now.wall

    @property
    def today(self) -> dt.date:
        return dt.datetime.fromtimestamp(self.now, dt.UTC).date()

    def grow(self, entries: int, days: int = 0) -> None:
        self._protocols.dispatcher.advance(days * DAY)
        events = self._protocols.dispatcher.events
        for _ in range(entries):
            work(self._peer, "mail")
            self._lake.add(events[self._written :])
            self._written = len(events)

    def expire(self, keep_days: int) -> None:
        assert self._lake.expire(keep_days, self.now)

    def merge(self) -> None:
        assert self._lake.compact()

    def forget_log(self) -> None:
        """Make a checkpoint and delete the log entries that it replaces, as the server does after two days."""
        store = store_of(self.folder)
        Commits.open(store).checkpoint()
        checkpoints.record(store, store.names())
        for entry in sorted((self.folder / "_delta_log").glob("*.json"))[:-1]:
            entry.unlink()

    def open(self) -> Opened:
        return Opened.open(self.folder)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    made = Tables(str(tmp_path / "tables"))
    made.create()
    return made


@pytest.fixture
def lake(tmp_path: Path) -> Grower:
    return Grower(tmp_path / "lake")


def ingested(tables: Tables, each: Range, names: frozenset[str] | None = None) -> None:
    """The tables have this range now."""
    for schema in (*ROW_LEVEL, *ROLLUPS):
        if names is None or schema.name in names:
            table = tables[schema.name]
            table.commit(table.handle(), [], positions={each.lake: each.upto})


def all_batches(tables: Tables, lake: Opened, rows: int) -> list[Range]:
    found = []
    while (planned := batch(tables, [lake], rows=rows)) is not None:
        [each] = planned.ranges
        ingested(tables, each)
        found.append(each)
        assert len(found) < 100
    return found


def test_batches_are_bounded_and_end_with_segments(tables: Tables, lake: Grower) -> None:
    lake.grow(5)
    opened = lake.open()
    found = all_batches(tables, opened, rows=6)
    assert [(each.after.entry, each.upto.entry) for each in found] == [(0, 2), (2, 4), (4, 5)]
    assert all(each.is_exact for each in found)
    assert [sum(file.rows for file in each.files) for each in found] == [6, 6, 3]
    assert found[-1].upto == Position(opened.version, opened.last)
    assert sorted({each.upto.version for each in found}) == [each.upto.version for each in found]


def test_batches_are_bounded_when_the_log_no_longer_has_the_versions(tables: Tables, lake: Grower) -> None:
    lake.grow(5)
    lake.forget_log()
    found = all_batches(tables, lake.open(), rows=6)
    assert [(each.after.entry, each.upto.entry) for each in found] == [(0, 2), (2, 4), (4, 5)]
    assert [sum(file.rows for file in each.files) for each in found] == [6, 6, 3]
    assert found[-1].upto.version == lake.open().version


def test_merged_files_are_divided_by_their_dates(tables: Tables, lake: Grower) -> None:
    for _ in range(3):
        lake.grow(2, days=1)
    lake.merge()
    lake.forget_log()
    found = all_batches(tables, lake.open(), rows=6)
    assert [(each.after.entry, each.upto.entry) for each in found] == [(0, 2), (2, 4), (4, 6)]


@pytest.mark.parametrize("known", [True, False], ids=["log", "no log"])
def test_a_bounded_batch_that_was_interrupted_is_completed(tables: Tables, lake: Grower, known: bool) -> None:
    lake.grow(4)
    if not known:
        lake.forget_log()
    opened = lake.open()
    planned = batch(tables, [opened], rows=6)
    assert planned is not None
    ingested(tables, planned.ranges[0], frozenset({ATTEMPTS.name}))
    [repair] = repairs(tables, [opened])
    assert repair.only is not None and ATTEMPTS.name not in repair.only and COUNTS_HOUR.name in repair.only
    [again] = repair.ranges
    assert [file.uri for file in again.files] == [file.uri for file in planned.ranges[0].files]
    assert again.upto == planned.ranges[0].upto


def test_the_lakes_of_a_fleet_share_the_bound(tables: Tables, tmp_path: Path) -> None:
    one, two = Grower(tmp_path / "one"), Grower(tmp_path / "two")
    for each in (one, two):
        each.grow(3)
    planned = batch(tables, [one.open(), two.open()], rows=6)
    assert planned is not None and [each.lake for each in planned.ranges] == [one.open().id]
    planned = batch(tables, [one.open(), two.open()], rows=12)
    assert planned is not None
    assert [each.upto.entry for each in planned.ranges] == [3, 1]


def test_events_that_were_deleted_before_they_were_read_are_lost(tables: Tables, lake: Grower) -> None:
    lake.grow(2)
    first = lake.today
    for _ in range(3):
        lake.grow(2, days=1)
    assert lost(tables, [lake.open()]) == []
    lake.expire(keep_days=1)
    found = lost(tables, [lake.open()])
    expired = first + dt.timedelta(days=1)
    assert found == [Lost("one", None, expired, 4)]
    assert f"deleted those up to {expired}, 4 journal entries, before the pipeline read them" in str(found[0])


def test_events_that_were_deleted_after_they_were_read_are_not_lost(tables: Tables, lake: Grower) -> None:
    lake.grow(2)
    all_batches(tables, lake.open(), rows=100)
    for _ in range(2):
        lake.grow(2, days=1)
    all_batches(tables, lake.open(), rows=100)
    lake.expire(keep_days=1)
    lake.grow(1)
    assert lost(tables, [lake.open()]) == []
