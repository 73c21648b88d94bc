"""Erased tables have what a rebuild from the erased lake gives, and nothing of the erased jobs in any file."""

import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from crossdock.lake.erase import LakeEraser
from crossdock.lake.selection import ERASED, Chosen, Which, choose
from crossdock.lake.store import store_of
from crossdock.lake.table import Lake as LakeVersion
from crossdock.pipeline import erase as erase_module
from crossdock.pipeline.catalog import Tables, no_progress
from crossdock.pipeline.erase import count, erase
from crossdock.pipeline.quality import faults_of
from crossdock.pipeline.tables import Table
from crossdock.pipeline.views.flows import refresh_flows
from tests.lake.crashes import Crash
from tests.pipeline.conftest import Grown
from tests.pipeline.flow_worlds import add, attempt, link, made, table_of
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture, rows
from tests.pipeline.pipelines import Pipeline


def texts_below(folder: Path) -> set[str]:
    """All texts in the Parquet files of these tables, named by a version or not."""
    found: set[Any] = set()
    for path in folder.rglob("*.parquet"):
        if "_delta_log" not in path.parts:
            for column in pq.ParquetFile(path).read().columns:
                values = column.combine_chunks()
                values = values.flatten() if pa.types.is_list(values.type) else values
                if pa.types.is_string(values.type):
                    found.update(values.unique().to_pylist())
    return found


def positions(tables: Tables, lake: str) -> dict[str, object]:
    return {table.name: table.position(lake) for table in tables}


def merged_counts(folder: Path) -> list[dict[str, Any]]:
    """`counts_day` as readers see it: added up."""
    key = [name for name in pl.read_delta(folder / "counts_day").columns if name not in ("n", "run_s")]
    whole = pl.read_delta(folder / "counts_day").group_by(key).agg(pl.col("n").sum(), pl.col("run_s").sum())
    return sorted(whole.to_dicts(), key=lambda row: [str(row[name]) for name in key])


def test_erased_tables_equal_those_rebuilt_from_the_erased_lake(
    spark: SparkSession, grown: Grown, tmp_path: Path
) -> None:
    for name, folder in (("lake", grown.lake), ("tables", grown.tables)):
        shutil.copytree(folder, tmp_path / name)
    (tmp_path / "data").mkdir()
    own = Pipeline(spark, tmp_path / "lake", tmp_path / "tables")
    own.run()
    lake = LakeVersion.open(own.lake)
    attempts = rows(own.folder, "attempts")
    failed = sorted({row["jid"] for row in attempts if row["error_message"]})[::2]
    linked = sorted({row["jid"] for row in rows(own.folder, "links") if row["jid"]})[::3]
    chosen = choose(lake, Which(jids=(*failed, *linked)), no_progress)
    assert failed and linked and chosen.unknown == []
    before, where = picture(own.folder), positions(own.tables, lake.id)
    counted = count(own.tables, lake, chosen, no_progress)
    assert counted.rows["attempts"] and counted.rows["links"] and counted.rows["failures_day"]

    erase(own.tables, lake, chosen, no_progress)
    assert not set(chosen.jids.to_pylist()) & texts_below(own.folder)
    LakeEraser(store_of(own.lake), tmp_path / "data", chosen, no_progress).run()
    assert positions(own.tables, lake.id) == where
    lakes = [LakeVersion.open(own.lake)]
    assert faults_of(own.tables, lakes) == []
    assert count(own.tables, lakes[0], chosen, no_progress).rows == {}
    after, counts = picture(own.folder), merged_counts(own.folder)
    assert any(row["error_group"] == ERASED for row in counts), "some groups were made of messages"
    for name in ("hourly", "daily", "histogram", "workers", "depths"):
        assert_same({name: after[name]}, {name: before[name]})
    assert sum(row["n"] for row in after["failures"]) == sum(row["n"] for row in before["failures"])

    assert own.run().rows == 0
    assert_same(picture(own.folder), after)
    own.rebuild()
    assert_same(picture(own.folder), after)
    assert_same({"counts_day": merged_counts(own.folder)}, {"counts_day": counts})


def test_events_that_the_tables_lack_are_ingested_without_the_data(pipeline: Pipeline, tmp_path: Path) -> None:
    load, lake = MixedLoad(3), Lake(pipeline.lake)
    load.go(100)
    lake.cut(load.events, 100)
    written = len(load.events)
    pipeline.run()
    load.go(60)
    lake.cut(load.events[written:], 100)
    lake.close()
    found = LakeVersion.open(pipeline.lake)
    chosen = choose(found, Which(since=0.0), no_progress)
    (tmp_path / "data").mkdir()
    erase(pipeline.tables, found, chosen, no_progress)
    LakeEraser(store_of(pipeline.lake), tmp_path / "data", chosen, no_progress).run()
    pipeline.run()
    grown = picture(pipeline.folder)
    assert {row["jid"] for row in grown["attempts"]} == {ERASED}
    pipeline.rebuild()
    assert_same(picture(pipeline.folder), grown)


class FixedLake:
    """As much of a lake as the tables need. It has no events any more."""

    id, server, location = "lake", "s", ""

    def files(self) -> list[Any]:
        return []


def jobs(*numbers: int) -> Chosen:
    return Chosen(pa.array(numbers, pa.int64()), pa.array([f"j{number}" for number in numbers]), [])


def erase_in(tables: Tables, *numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crossdock.pipeline.erased_failures.may_have", lambda lake, files, numbers: [])
    erase(tables, FixedLake(), jobs(*numbers), no_progress)  # type: ignore[arg-type]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    links = [
        link(1, 0, number=1, needs=[]),
        link(2, 0, number=2, needs=[1]),
        link(3, 0, number=3, group_name="batch"),
        link(4, 0, number=4, group_name="batch"),
        link(5, 1, number=2, needs=[1], server="other"),
    ]
    attempts = [attempt(6, 0, 1), attempt(7, 0, 2), attempt(8, 1, 3), attempt(9, 1, 2, server="other")]
    tables = made(tmp_path / "tables", links, attempts)
    for name in ("failures_day", "failures", "counts_day", "skipped"):
        tables[name].create()
    refresh_flows(tables)
    return tables


def test_jobs_lose_their_ids_in_links_attempts_and_flows(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {row["number"]: row for row in table_of(tables) if row["server"] == "s"}
    assert before[1]["name"] == "j1" and before[3]["name"] == "batch"
    erase_in(tables, 1, 3, monkeypatch=monkeypatch)
    for name in ("links", "attempts"):
        for row in table_of(tables, name):
            erased = row["number"] in (1, 3) and row["server"] == "s"
            assert row["jid"] == (ERASED if erased else f"j{row['number']}")
    after = {row["number"]: row for row in table_of(tables) if row["server"] == "s"}
    assert after[1] == before[1] | {"jid": ERASED, "name": ERASED}
    assert after[3] == before[3] | {"jid": ERASED}
    assert refresh_flows(tables) == set(), "no row changed"


def test_a_flow_is_named_by_another_job_than_its_first(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Erasing a job changes the name that it gave, and not the id of the first job."""
    erase_in(tables, 2, monkeypatch=monkeypatch)
    assert next(row["name"] for row in table_of(tables) if row["server"] == "s") == "j1"
    assert {row["jid"] for row in table_of(tables, "links") if row["number"] == 2} == {ERASED, "j2"}


def test_examples_of_dates_that_the_lake_has_deleted(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    day = dt.date(2026, 1, 5)
    row = {"date": day, "server": "s", "queue": "q", "kind": "k", "error_group": "Type", "cause": "no anna", "n": 3}
    row |= {"deaths": 1, "first_at": 1.0, "last_at": 2.0, "seq": 7, "jid": "j1", "message": "no anna"}
    other = row | {"cause": "other", "jid": "j9", "message": "other", "seq": 8}
    add(tables, "failures_day", [row, other])
    from crossdock.pipeline.views.queries import QUERIES
    from crossdock.pipeline.views.refresh import select

    view = tables["failures"]
    query = next(query for schema, (query, _) in QUERIES.items() if schema.name == "failures")
    found = select(query, {"failures_day": tables["failures_day"].handle()}, [day])
    view.commit(view.handle(), view.write(found.select(view.schema.names).cast(view.schema.arrow)))
    erase_in(tables, 1, monkeypatch=monkeypatch)
    stored = pa.table(tables["failures_day"].handle().to_pyarrow_table()).to_pylist()
    assert sorted(stored, key=lambda each: each["seq"]) == [row | {"jid": ERASED, "message": "", "cause": ""}, other]
    shown = pa.table(view.handle().to_pyarrow_table()).to_pylist()
    assert sorted((each["cause"], each["example_jid"], each["n"]) for each in shown) == [
        ("", ERASED, 3),
        ("other", "j9", 3),
    ]
    assert not {"j1", "no anna"} & texts_below(Path(tables.location))


def test_old_files_are_deleted(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    erase_in(tables, 1, monkeypatch=monkeypatch)
    for name in ("attempts", "links", "flows"):
        folder = Path(tables[name].location)
        there = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}
        assert there == {file.path for file in tables[name].files()}
    assert "j1" not in texts_below(Path(tables.location) / "attempts" / "x") | texts_below(
        Path(tables.location) / "flows"
    )


def test_a_killed_erase_is_repeated(tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before and after each commit and each deletion of old files."""
    before = tmp_path / "before"
    shutil.copytree(tables.location, before)
    erase_in(tables, 1, 3, monkeypatch=monkeypatch)
    expected = {name: table_of(tables, name) for name in ("attempts", "links", "flows")}
    commit, clean = Table.commit, erase_module.delete_old_files
    left = 0

    def counted(call: Any) -> Any:
        def run(*args: Any, **values: Any) -> None:
            nonlocal left
            for step in (lambda: None, lambda: call(*args, **values)):
                step()
                left -= 1
                if left == 0:
                    raise Crash

        return run

    for n in range(1, 100):
        own = Tables(str(tmp_path / str(n)))
        shutil.copytree(before, own.location)
        left = n
        with monkeypatch.context() as patch:
            patch.setattr(Table, "commit", counted(commit))
            patch.setattr(erase_module, "delete_old_files", counted(clean))
            try:
                erase_in(own, 1, 3, monkeypatch=patch)
                break
            except Crash:
                pass
        erase_in(own, 1, 3, monkeypatch=monkeypatch)
        assert {name: table_of(own, name) for name in expected} == expected
        for name in expected:
            folder = Path(own[name].location)
            found = {str(path.relative_to(folder)) for path in folder.rglob("part*.parquet")}
            assert found == {file.path for file in own[name].files()}
    assert n > 10
