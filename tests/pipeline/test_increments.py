"""Increments and rebuilds: the same rows, each once, and nothing touched that need not be."""

import datetime as dt
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from crossdock.pipeline import ledger
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import PipelineError, TablesInUse
from crossdock.pipeline.ingest import take_in
from crossdock.pipeline.lock import writing
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import run
from crossdock.pipeline.status import status
from tests.pipeline.conftest import Grown
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import Elsewhere
from tests.pipeline.pictures import assert_same, picture, rows, versions
from tests.support.all_protocols import AllProtocols, InProcess


@pytest.fixture(scope="module")
def own(spark: SparkSession, grown: Grown, tmp_path_factory: pytest.TempPathFactory) -> PipelineContext:
    """A copy of these tables."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(grown.tables, folder / "tables")
    works = PipelineContext(spark, grown.lake, folder / "tables")
    works.prepare()
    return works


def test_a_run_without_news_changes_nothing(own: PipelineContext) -> None:
    before = versions(own)
    assert run(own) == (0, 0, 0, 0, 0)
    assert versions(own) == before


def test_a_rebuild_equals_the_increments(own: PipelineContext, grown: Grown) -> None:
    works = own
    before = picture(works.tables_folder)
    assert all(before.values()), "every table has rows"
    assert set(status(works.lake, works.tables_folder).days.values()) == {"deltas"}
    rebuilt = rebuild(works)
    assert rebuilt == (sum(each.segments for each in grown.ran), sum(each.rows for each in grown.ran), 0, {})
    assert_same(picture(works.tables_folder), before)
    told = status(works.lake, works.tables_folder)
    assert set(told.days.values()) == {"rebuilt"}, "a day is never both"
    assert run(works).rows == 0


def test_a_rebuild_of_one_day_leaves_the_others(own: PipelineContext) -> None:
    works = own
    before, files = picture(works.tables_folder), versions(works)
    day = sorted(files["bookings"])[2]
    rebuild(works, [dt.date.fromisoformat(day)])
    assert_same(picture(works.tables_folder), before)
    after = versions(works)
    for table, days in files.items():
        for each, paths in days.items():
            # A queue's depth is summed up from the beginning: the forecasts of later days follow.
            anew = each == day or (table == "forecast" and each > day)
            assert (after[table][each] != paths) == (anew and table != "flows"), (table, each)


def test_late_bookings_touch_only_their_days(works: PipelineContext) -> None:
    all_protocols = AllProtocols()
    lake = Lake(works.lake)
    late = Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"]))
    peer = all_protocols.qless()
    for _ in range(3):
        peer.push("q", {})
        got = peer.fetch("q")
        assert got is not None and peer.succeed(got.ident)
        all_protocols.dispatcher.advance(86_400)
    lake.add(all_protocols.dispatcher.events)
    run(works)
    before, written = versions(works), len(all_protocols.dispatcher.events)
    late.hours = -48.0
    late.push("q", {})
    got = late.fetch("q")
    assert got is not None and late.succeed(got.ident)
    lake.add(all_protocols.dispatcher.events[written:])
    run(works)
    after = versions(works)
    for table in ("daily", "histogram"):
        changed = [day for day in before[table] if before[table][day] != after[table][day]]
        assert changed == ["2026-11-16"], "two days before the server's date"
    assert sorted(after["attempts"]) == [*sorted(before["attempts"]), "2026-11-18"]
    found = [row for row in rows(works.tables_folder, "daily") if row["date"] == dt.date(2026, 11, 16)]
    assert [row["run_total"] for row in found] == [2]
    lake.close()


def test_flows_whose_links_are_months_apart(works: PipelineContext) -> None:
    """Each is made of all its links whenever one comes, and the others are left as they are."""
    all_protocols, lake, written = AllProtocols(), Lake(works.lake), 0
    peer = all_protocols.qless()
    firsts = [peer.push("q", {}) for _ in range(3)]
    olds = [peer.push("q", {}, depends=f'["{jid}"]') for jid in firsts]
    for day, depends in enumerate((olds[0], "", olds[0])):
        lake.add(all_protocols.dispatcher.events[written:])
        written = len(all_protocols.dispatcher.events)
        run(works)
        all_protocols.dispatcher.advance((40 + day) * 86_400)
        if depends:
            olds.append(peer.push("q", {}, depends=f'["{depends}"]'))
        else:  # an attempt alone changes a flow, too
            got = peer.fetch("q")
            assert got is not None and peer.succeed(got.ident)
    lake.add(all_protocols.dispatcher.events[written:])
    lake.close()
    run(works)
    before = picture(works.tables_folder)
    assert sorted((row["jobs"], row["succeeded"]) for row in before["flows"]) == [(2, 0), (2, 1), (4, 0)]
    assert {row["date"] for row in before["flows"]} == {dt.date(2026, 11, 15)}
    rebuild(works)
    assert_same(picture(works.tables_folder), before)


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Commits of all tables, of which so many are made; the next one is the first thing that does not happen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self._left = left
        for place, name in ((DeltaTable, "create_write_transaction"), (ledger, "write_deltalake")):
            self._make_mortal(monkeypatch, place, name)

    def _make_mortal(self, monkeypatch: pytest.MonkeyPatch, place: object, name: str) -> None:
        real = getattr(place, name)

        def commit(*args: object, **kwargs: object) -> None:
            if not self._left:
                raise Died
            self._left -= 1
            real(*args, **kwargs)

        monkeypatch.setattr(place, name, commit)


@pytest.mark.slow
def test_dying_at_every_commit_loses_nothing_and_counts_nothing_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Each life makes the commit that the last one died before, and dies before the next: those files are written and
    moved in, and no log names them. To die just after a commit leaves the same, without such files."""
    all_protocols = AllProtocols()
    peer = all_protocols.qless()
    lake = Lake(tmp_path / "lake")
    first = peer.push("q", {})
    peer.push("q", {}, depends=f'["{first}"]')
    for _ in range(3):
        got = peer.fetch("q")
        if got is not None:
            (peer.fail if got.ident == first else peer.succeed)(got.ident)
        all_protocols.dispatcher.advance(50_000)
    lake.cut(all_protocols.dispatcher.events, 4)
    untroubled = PipelineContext(spark, tmp_path / "lake", tmp_path / "untroubled")
    run(untroubled)
    lives = 0
    while True:
        works = PipelineContext(spark, tmp_path / "lake", tmp_path / "tables")
        with pytest.MonkeyPatch.context() as monkeypatch:
            for table in works.catalog:
                table.create()
            Mortal(monkeypatch, min(lives, 1))
            try:
                run(works)
                break
            except Died:
                lives += 1
    assert lives >= 15, "ledger, six facts and eight tables"
    assert_same(picture(works.tables_folder), picture(untroubled.tables_folder))
    assert run(works).rows == 0
    lake.close()


def test_a_table_that_lacks_a_batch_is_not_guessed_at(works: PipelineContext) -> None:
    all_protocols = AllProtocols()
    lake = Lake(works.lake)
    works.prepare()
    for _ in range(2):
        all_protocols.qless().push("q", {})
        lake.add(all_protocols.dispatcher.events)
        all_protocols.dispatcher.events.clear()
        assert take_in(works) is not None
    lake.close()
    run(works)
    before = picture(works.tables_folder)
    works.catalog["tallies"].folder.rename(works.tables_folder / "gone")
    with pytest.raises(
        PipelineError, match="the table tallies ends with batch 0 and the ledger with 2: run `crossdock"
    ):
        run(works)
    works.prepare()
    rebuild(works)
    assert_same(picture(works.tables_folder), before)


def test_tables_whose_ledger_is_gone_are_not_added_to(works: PipelineContext) -> None:
    """They have batches of the numbers that a new ledger begins with: its segments would be taken for theirs."""
    all_protocols, lake = AllProtocols(), Lake(works.lake)
    works.prepare()
    for _ in range(3):
        all_protocols.qless().push("q", {})
        lake.add(all_protocols.dispatcher.events)
        all_protocols.dispatcher.events.clear()
        assert take_in(works) is not None
    lake.close()
    (works.tables_folder / "facts" / "segments").rename(works.tables_folder / "gone")
    anew = PipelineContext(works.spark, works.lake, works.tables_folder)
    with pytest.raises(PipelineError, match=r"ends with batch 3 and the ledger with 0, .* away and run `crossdock"):
        run(anew)


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    with writing(tmp_path, 0), pytest.raises(TablesInUse, match="is writing the tables in"), writing(tmp_path, 0.1):
        pass
    with writing(tmp_path, 0):
        pass
