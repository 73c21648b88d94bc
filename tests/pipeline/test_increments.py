"""Increments and rebuilds have the same rows, each once, and change only the days that they must."""

import datetime as dt
import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from crossdock.pipeline import rollup_files
from crossdock.pipeline.errors import PipelineError, TablesInUse
from crossdock.pipeline.lakes import add_lake
from crossdock.pipeline.lock import writing
from crossdock.pipeline.run import run
from crossdock.pipeline.tables import Table
from crossdock.pipeline.views import refresh
from tests.pipeline.conftest import Grown
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import Elsewhere, MixedLoad, work
from tests.pipeline.pictures import PUBLIC, assert_same, picture, rows, versions
from tests.pipeline.pipelines import Pipeline
from tests.support.all_protocols import AllProtocols, InProcess

#: Tables that a mixed load leaves empty.
EMPTY = {"slo"}


@pytest.fixture(scope="module")
def own(spark: SparkSession, grown: Grown, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """A copy of these tables."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copytree(grown.tables, folder / "tables")
    return Pipeline(spark, grown.lake, folder / "tables")


def test_a_run_without_new_files_changes_nothing(own: Pipeline) -> None:
    before = versions(own.tables)
    assert own.run() == (0, 0, 0, 0)
    assert versions(own.tables) == before


def test_a_rebuild_equals_the_increments(own: Pipeline, grown: Grown) -> None:
    before = picture(own.folder)
    assert {name for name in PUBLIC if not before[name]} == EMPTY
    rebuilt = own.rebuild()
    assert rebuilt == (sum(each.files for each in grown.ran), sum(each.rows for each in grown.ran))
    assert_same(picture(own.folder), before)
    assert own.run().rows == 0


def test_the_tables_survive_the_optimize_of_another_tool(own: Pipeline) -> None:
    before = picture(own.folder)
    for table in own.tables:
        DeltaTable(table.location).optimize.compact()
    assert_same(picture(own.folder), before)
    assert own.run() == (0, 0, 0, 0)


def test_late_bookings_touch_only_their_days(pipeline: Pipeline) -> None:
    all_protocols, lake = AllProtocols(), Lake(pipeline.lake)
    late = Elsewhere(InProcess(all_protocols.dispatcher, all_protocols.protocols["redis"]))
    peer = all_protocols.qless()
    for _ in range(3):
        work(peer, "q")
        all_protocols.dispatcher.advance(86_400)
    lake.add(all_protocols.dispatcher.events)
    pipeline.run()
    before, written = versions(pipeline.tables), len(all_protocols.dispatcher.events)
    late.hours = -48.0
    work(late, "q")
    lake.add(all_protocols.dispatcher.events[written:])
    lake.close()
    pipeline.run()
    after = versions(pipeline.tables)
    two_days_before, today = dt.date(2026, 11, 16), dt.date(2026, 11, 18)
    for table in ("daily", "histogram"):
        changed = {day for day in before[table] if before[table][day] != after[table].get(day)}
        assert changed == {two_days_before}
    assert sorted(after["attempts"]) == [*sorted(before["attempts"]), today]
    found = [row for row in rows(pipeline.folder, "daily") if row["date"] == two_days_before]
    assert [row["run_n"] for row in found] == [2]


def test_a_lake_whose_files_were_merged_is_ingested_once(pipeline: Pipeline) -> None:
    """Files that were merged before the tables had them are read in their merged form, and only what is new of it."""
    all_protocols, lake, written = AllProtocols(), Lake(pipeline.lake), 0
    peer = all_protocols.qless()
    for day in range(4):
        for _ in range(3):
            work(peer, "q")
            lake.add(all_protocols.dispatcher.events[written:])
            written = len(all_protocols.dispatcher.events)
        if day == 1:
            pipeline.run()
        all_protocols.dispatcher.advance(86_400)
    assert lake.compact() > 0
    lake.close()
    pipeline.run()
    before = picture(pipeline.folder)
    assert len(before["attempts"]) == 12
    pipeline.rebuild()
    assert_same(picture(pipeline.folder), before)


def test_two_servers_in_one_set_of_tables(pipeline: Pipeline, tmp_path: Path) -> None:
    loads = {}
    for seed, server in enumerate(("one", "two")):
        loads[server] = MixedLoad(seed)
        loads[server].go(60)
        lake = Lake(tmp_path / server, server)
        lake.cut(loads[server].events, 100)
        lake.close()
    pipeline.lake = tmp_path / "one"
    pipeline.run()
    add_lake(pipeline.tables["lakes"], str(tmp_path / "two"))
    pipeline.run()
    alone = Pipeline(pipeline.context.spark, tmp_path / "two", tmp_path / "alone")
    alone.run()
    for name, expected in picture(alone.folder).items():
        days = {row["date"] for row in expected}
        # Depths are carried over days on which only other servers have events.
        found = [row for row in rows(pipeline.folder, name) if row["server"] == "two" and row["date"] in days]
        if name in ("forecast", "capacity"):  # the newest hour is that of all servers
            for row in (*found, *expected):
                for column in [column for column in row if isinstance(row[column], float)]:
                    del row[column]
        assert_same({name: found}, {name: expected})
    other = Lake(tmp_path / "three", "two")
    other.add(loads["one"].events[:3])
    other.close()
    with pytest.raises(PipelineError, match="already have a server named two"):
        add_lake(pipeline.tables["lakes"], str(tmp_path / "three"))


class Died(BaseException):
    """The process is killed."""


class Mortal:
    """Counts the commits of all tables, and kills the process before the commit after the given number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
        self._left = left
        real = DeltaTable.create_write_transaction

        def commit(*args: object, **kwargs: object) -> None:
            if not self._left:
                raise Died
            self._left -= 1
            real(*args, **kwargs)  # type: ignore[arg-type]

        monkeypatch.setattr(DeltaTable, "create_write_transaction", commit)


@pytest.mark.slow
def test_a_kill_at_any_commit_loses_nothing_and_counts_nothing_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Each run makes one more commit than the run before it, and is killed before the next commit. The files of that
    commit are written, but no log names them. A kill just after a commit leaves the same state without such files."""
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
    lake.close()
    untroubled = Pipeline(spark, tmp_path / "lake", tmp_path / "untroubled")
    untroubled.run()
    lives, pipeline = 0, Pipeline(spark, tmp_path / "lake", tmp_path / "tables")
    pipeline.lakes()
    while True:
        with pytest.MonkeyPatch.context() as monkeypatch:
            Mortal(monkeypatch, min(lives, 1))
            try:
                pipeline.run()
                break
            except Died:
                lives += 1
    assert lives >= 15, "commits of seven tables of events and of the views"
    assert_same(picture(pipeline.folder), picture(untroubled.folder))
    assert pipeline.run().rows == 0


def test_rows_that_spark_does_not_see_are_reported(pipeline: Pipeline) -> None:
    """A file of the lake that has fewer rows than the log says, for example another file of the same name on the
    executors."""
    all_protocols, lake = AllProtocols(), Lake(pipeline.lake)
    work(all_protocols.qless(), "q")
    lake.add(all_protocols.dispatcher.events)
    lake.close()
    [opened] = pipeline.lakes()
    [file] = opened.files()
    from crossdock.pipeline.ingest import ingest
    from crossdock.pipeline.planning import batch

    planned = batch(pipeline.tables, [opened])
    assert planned is not None
    [only] = planned.ranges
    more = only._replace(files=[only.files[0]._replace(rows=file.rows + 1)])
    with pytest.raises(PipelineError, match=r"Spark read 3 events of files that have 4: .*; nothing was committed"):
        ingest(pipeline.context, [more])
    assert pipeline.run().rows == file.rows


def test_the_tables_of_a_large_batch_equal_those_of_small_ones(
    spark: SparkSession, grown: Grown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors write the rollups, and each date of a view is computed by a query of its own."""
    monkeypatch.setattr(rollup_files, "COLLECTED", 0)
    monkeypatch.setattr(rollup_files, "_COLLECTED_ROWS", 0)
    monkeypatch.setattr(refresh, "_ROWS_AT_ONCE", 1)
    large = Pipeline(spark, grown.lake, tmp_path / "tables")
    large.run()
    assert_same(picture(large.folder), picture(grown.tables))


def test_rollups_that_the_driver_does_not_see_are_reported(
    spark: SparkSession, grown: Grown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executors write to another storage than the driver's."""
    monkeypatch.setattr(rollup_files, "COLLECTED", 0)
    monkeypatch.setattr(rollup_files, "_COLLECTED_ROWS", 0)
    pipeline = Pipeline(spark, grown.lake, tmp_path / "tables")
    lakes = pipeline.lakes()
    opened = Table.named
    monkeypatch.setattr(Table, "named", lambda table, paths: opened(table, list(paths)[1:]))
    with pytest.raises(PipelineError, match=r"Spark wrote [0-9]+ rows to .*, and [0-9]+ of them are visible here"):
        run(pipeline.context, lakes, pipeline.settings)
    monkeypatch.undo()
    assert pipeline.run().rows == sum(each.rows for each in grown.ran)


def test_a_damaged_file_stops_the_run_until_it_is_restored(pipeline: Pipeline) -> None:
    all_protocols, lake = AllProtocols(), Lake(pipeline.lake)
    work(all_protocols.qless(), *["q"] * 20)
    lake.add(all_protocols.dispatcher.events)
    lake.close()
    [path] = pipeline.lake.rglob("*.parquet")
    whole = path.read_bytes()
    path.write_bytes(whole[:500] + bytes([whole[500] ^ 1]) + whole[501:])
    with pytest.raises(PipelineError, match=r"is damaged: .*; nothing was committed. Restore the file"):
        pipeline.run()
    path.write_bytes(whole)
    assert pipeline.run().files == 1


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with writing(folder, 0), pytest.raises(TablesInUse, match="is writing the tables in"), writing(folder, 0.1):
        pass
    with writing(folder, 0):
        pass
