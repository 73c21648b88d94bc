"""Tables in an object store that speaks S3: commits, rollups, views, status, checks and cleaning up.

Spark of PyPI has no connector for S3. So Spark reads a lake on disk, and its rows are written by pyarrow."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.transaction import AddAction
from pyspark.sql import DataFrame, SparkSession

from crossdock.cli.main import main
from crossdock.lake.table import Lake as Opened
from crossdock.lake.writer import Writer
from crossdock.pipeline import ingest, tables
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.errors import TablesInUse
from crossdock.pipeline.lakes import add_lake
from crossdock.pipeline.quality import faults_of
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import Ran, RunSettings, refresh_all, run
from crossdock.pipeline.schemas.appended import COUNTS_HOUR
from crossdock.pipeline.segment_checks import fault_of
from crossdock.pipeline.tables import Position, Table
from tests.lake.source import SERVER, ListSource, story
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import PUBLIC, assert_same
from tests.support.object_store import BUCKET, object_store


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store():
        yield f"s3://{BUCKET}"


@pytest.fixture
def location(bucket: str, request: pytest.FixtureRequest) -> str:
    return f"{bucket}/{request.node.name}"


def written_by_pyarrow(table: Table, rows: DataFrame) -> list[AddAction]:
    return table.write(rows.toArrow().select(table.schema.names).cast(table.schema.arrow))


def rows_at(location: str) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name in PUBLIC:
        engine = QueryBuilder().register(name, DeltaTable(f"{location}/{name}"))
        rows = pa.table(engine.execute(f"SELECT * FROM {name}").read_all()).to_pylist()
        found[name] = sorted(rows, key=lambda row: [str(each) for each in row.values() if not isinstance(each, float)])
    return found


def go(context: PipelineContext, lake: Path) -> Ran:
    context.tables.create()
    add_lake(context.tables["lakes"], str(lake))
    lakes = [Opened.open(lake)]
    ran = run(context, lakes, RunSettings())
    assert faults_of(context.tables, lakes) == []
    return ran


@pytest.mark.slow
def test_tables_in_an_object_store_equal_tables_on_a_disk(
    spark: SparkSession,
    location: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ingest, "_spark_rows", written_by_pyarrow)
    load, lake, written = MixedLoad(6), Lake(tmp_path / "lake"), 0
    remote, local = PipelineContext(spark, location), PipelineContext(spark, str(tmp_path / "tables"))
    for _ in range(2):
        load.go(60)
        lake.cut(load.events[written:], 100)
        written = len(load.events)
        assert go(remote, lake.folder) == go(local, lake.folder)
    lake.close()
    before = rows_at(location)
    assert len(before["attempts"]) > 20
    assert_same(before, rows_at(str(tmp_path / "tables")))
    folders = ["--lake", str(lake.folder), "--tables", location]
    assert main(["pipeline", "status", *folders]) == 0
    assert capsys.readouterr().out.startswith(f"one: up to date  ({lake.folder})\n")
    assert main(["pipeline", "run", *folders]) == 0
    assert capsys.readouterr().out == "nothing new\n"
    assert main(["pipeline", "check", *folders]) == 0
    rebuild(remote, [Opened.open(lake.folder)])
    refresh_all(remote.tables, RunSettings(), remote.progress)
    assert_same(rows_at(location), before)


@pytest.fixture
def table(location: str) -> Table:
    made = Tables(location)["counts_hour"]
    made.create()
    return made


def counted(n: int) -> pa.Table:
    row = dict.fromkeys(COUNTS_HOUR.names) | {"date": dt.date(2026, 11, 15), "server": "one", "n": n}
    return pa.Table.from_pylist([row], schema=COUNTS_HOUR.arrow)


def test_of_two_runs_with_the_same_batch_one_commits(table: Table) -> None:
    """An object store has no lock."""
    positions = {"lake": Position(3, 30)}
    first, second = table.handle(), table.handle()
    table.commit(first, table.write(counted(1)), positions=positions)
    with pytest.raises(TablesInUse, match=r"another process changed the table counts_hour in s3://.* meanwhile: run"):
        table.commit(second, table.write(counted(1)), positions=positions)
    assert [file.rows for file in table.files()] == [1]
    assert table.position("lake") == (3, 30)


def test_a_table_is_cleaned_up(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_CHECKPOINT", 2)
    monkeypatch.setattr(tables, "KEEP_HOURS", 0)
    for n in range(3):
        table.commit(table.handle(), table.write(counted(n)), positions={"lake": Position(n, n)})
    unused = table.write(counted(9))
    table.tidy()
    paths = {path for path, _ in table.storage.list("")}
    assert unused[0].path not in paths and {file.path for file in table.files()} <= paths
    with table.storage.open("_delta_log/_last_checkpoint") as source:
        assert json.loads(source.read())["version"] == 3
    assert table.position("lake") == (2, 2)
    assert sum(table.read(file).column("n").to_pylist()[0] for file in table.files()) == 3


def test_an_interrupted_write_is_removed(table: Table) -> None:
    added = table.write(counted(1))
    folder = added[0].path.partition("/")[0]
    assert [path for path, _ in table.storage.list(folder)] == [added[0].path]
    table.storage.remove(folder)
    assert table.storage.list(folder) == []


def test_damaged_files_of_a_lake_in_an_object_store_are_recognised(location: str, tmp_path: Path) -> None:
    writer = Writer(location, tmp_path, ListSource(story()), server=SERVER)
    for _ in writer.take(lambda: False):
        pass
    writer.publish()
    writer.close()
    lake = Opened.open(location)
    path = lake.files()[0].path
    assert fault_of(f"{location}/{path}") == ""
    data = lake.store.read(path)
    lake.store.write(path, data[:300] + bytes([data[300] ^ 1]) + data[301:])
    assert fault_of(f"{location}/{path}").startswith(f"{location}/{path} is damaged: ")
    lake.store.delete(path)
    assert fault_of(f"{location}/{path}").startswith(f"{location}/{path} cannot be read: ")
