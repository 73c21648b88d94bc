"""The tables as others open them: the examples of the docs, run as they stand, and every column that they name."""

import json
import os
import re
import subprocess
import sys
from math import ceil
from pathlib import Path
from statistics import fmean, variance
from typing import Final

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from crossdock.cli.main import main
from crossdock.pipeline.catalog import FACTS, VIEWS, Catalog
from tests.pipeline.classes import quick
from tests.pipeline.conftest import Grown
from tests.pipeline.pictures import PUBLIC, rows
from tests.support.patience import PROGRAM_PATIENCE_S

BOOKED: Final = pc.field("booked_run")
ROOT: Final = Path(__file__).parents[2]
_BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples() -> list[str]:
    return _BLOCK.findall((ROOT / "docs/how-to/pipeline.md").read_text("utf-8"))


def told(grown: Grown, block: str, **env: str) -> str:
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
    blocks = [block for block in examples() if "pyspark" not in block and "crossdock" not in block]
    assert len(blocks) == 4
    duck, polars, pandas, moments = (told(grown, block) for block in blocks)
    assert "billing" in duck and "jid" in polars and "error_group" in pandas
    runs = sum(row["run_total"] for row in rows(grown.tables, "daily") if row["queue"] == "mail")
    assert moments.split()[0] == str(runs)


@pytest.mark.slow
def test_the_example_of_spark(grown: Grown, classes: Path) -> None:
    [block] = [block for block in examples() if "crossdock" in block]
    options = quick(classes).replace("-XX:+UseSerialGC", "")  # the example's session names another one
    assert "|billing|" in told(grown, block, JAVA_TOOL_OPTIONS=options)


@pytest.mark.parametrize("name", PUBLIC)
def test_all_readers_see_the_same_rows(spark: SparkSession, grown: Grown, name: str) -> None:
    folder = grown.tables / name
    count = len(rows(grown.tables, name))
    named = duckdb.read_parquet(DeltaTable(folder).file_uris(), hive_partitioning=True)
    assert named.aggregate("count(*)").fetchall() == [(count,)]
    assert pl.scan_delta(folder).collect().height == count
    assert len(named.df()) == count
    assert Catalog(grown.tables)[name].read(spark).count() == count


def test_every_column_is_documented() -> None:
    page = (ROOT / "docs/reference/tables.md").read_text("utf-8")
    chapters = {text.split("\n", 1)[0]: text for text in page.split("\n## ")[1:]}
    schemas = {each.name: each.schema for each in (*FACTS, *VIEWS)}
    for name in PUBLIC:
        named = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", chapters[name], re.MULTILINE))))
        assert named == set(schemas[name].fieldNames()), name


def test_the_reports_say_what_is_in_the_lake(grown: Grown, capsys: pytest.CaptureFixture[str]) -> None:
    """From the events to `crossdock report`, all the way."""
    booked: dict[str, list[float]] = {}
    values = ds.dataset(grown.lake / "events").to_table(columns=["booked_queue", "run_s"], filter=BOOKED)
    for row in values.to_pylist():
        booked.setdefault(row["booked_queue"], []).append(row["run_s"])
    last = max(row["date"] for row in rows(grown.tables, "daily"))
    where = ["--lake", str(grown.lake), "--tables", str(grown.tables), "--until", str(last)]
    assert main(["report", "queue", "--days", "60", "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["queue"]: row["runs"] for row in told["queues"]} == {name: len(runs) for name, runs in booked.items()}
    assert told["tables"]["waiting"] == 0
    for row in told["queues"]:
        runs, run = sorted(booked[row["queue"]]), row["run"]
        assert run["mean"] == pytest.approx(fmean(runs), rel=1e-9)
        assert run["variance"] == pytest.approx(variance(runs), rel=1e-9)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
            exact = runs[ceil(share * len(runs)) - 1]
            assert run[name] == pytest.approx(max(exact, 0.0), rel=0.0197), (row["queue"], name)
    for words in (["queue", "mail"], ["failures"], ["workers"], ["slow"]):
        assert main(["report", *words, "--days", "60", *where]) == 0
        assert "nothing\n" not in capsys.readouterr().out, words
