"""The tables in other tools: the examples of the docs run unchanged, and all readers see the same rows."""

import json
import os
import re
import subprocess
import sys
from math import ceil
from pathlib import Path
from statistics import fmean, variance
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from crossdock.cli.main import main
from crossdock.lake.table import Lake
from crossdock.pipeline.schemas.appended import ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import VIEWS
from crossdock.pipeline.spark_tables import read_table, register_tables
from crossdock.pipeline.table_examples import EXAMPLES
from tests.pipeline.classes import quick
from tests.pipeline.conftest import Grown
from tests.reports.shop import OBJECTIVES, fill_shop
from tests.reports.tables import Tables
from tests.support.doc_pages import blocks
from tests.support.notebook import run_cells
from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.table_examples import answer, assert_same_answer, last_value

PAGE: Final = "docs/how-to/pipeline.md"
NAMES: Final = [schema.name for schema in (*ROW_LEVEL, *ROLLUPS, *VIEWS)]


def run_block(grown: Grown, block: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", block],
        cwd=grown.tables.parent,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_of_duckdb_polars_and_pandas(grown: Grown) -> None:
    found = [block for block in blocks(PAGE, "python") if "pyspark" not in block and "crossdock" not in block]
    assert len(found) == 4
    duck, polars, pandas, moments = (run_block(grown, block) for block in found)
    assert "billing" in duck and "jid" in polars and "error_group" in pandas
    runs = pl.read_delta(grown.tables / "daily").filter(pl.col("queue") == "mail")["run_n"].sum()
    assert moments.split()[0] == str(runs)


@pytest.mark.slow
@pytest.mark.parametrize("page", [PAGE, "docs/reference/tables.md"])
def test_the_examples_of_spark(page: str, grown: Grown, classes: Path) -> None:
    [block] = [block for block in blocks(page, "python") if "register_tables" in block]
    options = quick(classes).replace("-XX:+UseSerialGC", "")  # the session of the example sets another collector
    assert re.search(r"\|\s*billing\|", run_block(grown, block, JAVA_TOOL_OPTIONS=options))


def plain(found: pa.Table, schema: TableSchema) -> list[str]:
    """The rows in order. Readers differ in the widths of their types."""
    return sorted(map(str, found.select(schema.names).cast(schema.arrow).to_pylist()))


@pytest.mark.parametrize("schema", [*ROW_LEVEL, *ROLLUPS, *VIEWS], ids=lambda schema: schema.name)
def test_all_readers_see_the_same_rows(spark: SparkSession, grown: Grown, schema: TableSchema) -> None:
    table = DeltaTable(grown.tables / schema.name)
    assert [field.name for field in table.schema().fields] == schema.names
    expected = plain(table.to_pyarrow_table(), schema)
    query = QueryBuilder().register(schema.name, table).execute(f"SELECT * FROM {schema.name}")
    assert plain(pa.table(query.read_all()), schema) == expected
    assert plain(pl.read_delta(grown.tables / schema.name).to_arrow(), schema) == expected
    frame = read_table(spark, str(grown.tables), schema.name)
    assert frame.columns == schema.names
    assert plain(frame.toArrow(), schema) == expected
    if expected:
        with duckdb.connect() as connection:
            files = connection.read_parquet(table.file_uris(), hive_partitioning=True, union_by_name=True)
            assert plain(files.to_arrow_table(), schema) == expected


@pytest.fixture(scope="module")
def small(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    made = fill_shop(Tables(tmp_path_factory.mktemp("small") / "tables")).finish(*OBJECTIVES)
    assert set(NAMES) <= set(register_tables(spark, str(made.folder)))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_give_the_same_answers_in_spark(spark: SparkSession, small: Tables, name: str) -> None:
    example = EXAMPLES[name]
    table = DeltaTable(small.folder / name)
    one = answer(QueryBuilder().register(name, table).execute(example.sql).read_all())
    assert_same_answer(one, answer(spark.sql(example.sql).toArrow()))
    names: dict[str, Any] = {"spark": spark, "F": F, "Window": Window}
    assert_same_answer(one, answer(last_value(example.pyspark, names).toArrow()))


def test_spark_describes_columns_and_prunes_dates(spark: SparkSession, small: Tables) -> None:
    rows = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE daily").collect()}
    assert rows["died"] == "jobs that failed and were not tried again"
    days = read_table(spark, str(small.folder), "hourly").where("date = DATE '2026-11-16'")
    assert len(days.inputFiles()) > 1
    scanned = days._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(date" in scanned


def test_the_notebook_runs_with_its_spark_cells(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill_shop(Tables(tmp_path / "crossdock-data" / "tables")).finish(*OBJECTIVES)
    names = run_cells(tmp_path, spark=True)
    by_kind = {(row["queue"], row["n"], row["longest_wait"]) for row in names["by_kind"].collect()}
    assert by_kind == {("mail", 24, 3.0), ("billing", 1, 60.0), ("old", 1, 0.0)}
    assert names["moved"].to_pylist() == [{"queue": "mail", "jobs": 3, "workers": 1.0}]


def test_the_reports_agree_with_the_lake(grown: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way from events to `crossdock report`."""
    booked: dict[str, list[float]] = {}
    lake = Lake.open(grown.lake)
    files = [f"{lake.location}/{file.path}" for file in lake.files()]
    query = "select booked_queue, run_s from events where booked_run"
    with duckdb.connect() as connection:
        connection.register("events", connection.read_parquet(files))
        for queue, run_s in connection.sql(query).fetchall():
            booked.setdefault(queue, []).append(run_s)
    last = pl.read_delta(grown.tables / "daily")["date"].max()
    where = ["--lake", str(grown.lake), "--tables", str(grown.tables), "--until", str(last)]
    assert main(["report", "queue", "--days", "60", "--json", *where]) == 0
    found = json.loads(capsys.readouterr().out)
    ran = {row["queue"]: row["times"]["run"] for row in found["queues"] if row["times"]["run"]["n"]}
    assert {queue: run["n"] for queue, run in ran.items()} == {name: len(runs) for name, runs in booked.items()}
    assert (found["tables"]["lakes"], found["tables"]["waiting"]) == (1, 0)
    for queue, run in ran.items():
        runs = sorted(booked[queue])
        assert run["mean"] == pytest.approx(fmean(runs), rel=1e-9)
        assert run["variance"] == pytest.approx(variance(runs) if len(runs) > 1 else 0.0, rel=1e-9)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            exact = runs[ceil(share * len(runs)) - 1]
            assert run[name] == pytest.approx(max(exact, 0.0), rel=0.0197), (queue, name)
    for words in (["queue", "mail"], ["failures"], ["workers"], ["slow", "--queue", "mail"], ["capacity"], ["flaky"]):
        assert main(["report", *words, "--days", "60", *where]) == 0
        assert "nothing\n" not in capsys.readouterr().out, words
