"""`crossdock pipeline register`: the tables in a Spark catalog, which other sessions query by name."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.schemas.appended import LINKS, REGISTRY, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.views import HOURLY, VIEWS
from crossdock.pipeline.source.options import BadOption, reading
from crossdock.pipeline.source.source import FORMAT, register
from crossdock.pipeline.source.table import TableRows, schema_of
from crossdock.pipeline.spark_catalog import register_catalog
from tests.pipeline.conftest import Grown
from tests.support.command_line import Operator
from tests.support.doc_pages import blocks
from tests.support.patience import PROGRAM_PATIENCE_S

#: A program that knows nothing but the folder of the catalog. It does not register the format.
QUERY = """
import json, sys
from crossdock.pipeline.session import start
from crossdock.pipeline.spark_catalog import catalog_conf

spark = start("local[1]", {**catalog_conf(sys.argv[1]), **json.loads(sys.argv[2])})
for query in sys.argv[3:]:
    print(json.dumps([list(row) for row in spark.sql(query).collect()], default=str))
"""


def query(catalog: Path, *queries: str) -> list[Any]:
    conf = {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    done = subprocess.run(
        [sys.executable, "-c", QUERY, str(catalog), json.dumps(conf), *queries],
        cwd=catalog.parent, capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_delta(tables: Path, name: str, sql: str) -> list[tuple[Any, ...]]:
    found = QueryBuilder().register(name, DeltaTable(tables / name)).execute(sql).read_all()
    return [tuple(row.values()) for row in pa.table(found).to_pylist()]


@pytest.mark.slow
def test_registered_tables_can_be_queried_by_name_in_another_session(
    grown: Grown, classes: Path, tmp_path: Path
) -> None:
    operator = Operator(tmp_path)
    operator.patience_s = PROGRAM_PATIENCE_S
    words = ["pipeline", "register", "--tables", str(grown.tables), "--catalog", str(tmp_path / "catalog")]
    done = operator.run(*words, "--cds", str(classes))
    assert done.code == 0, done.err
    count = len((*REGISTRY, *ROW_LEVEL, *ROLLUPS, *VIEWS))
    assert done.out == f"{count} tables in the catalog in {tmp_path / 'catalog'}: SELECT * FROM crossdock.hourly\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["catalog"], "nothing is left in the current folder"
    sums = "SELECT date, queue, sum(arrived), sum(departed) FROM {} GROUP BY date, queue ORDER BY date, queue"
    day = str(by_delta(grown.tables, "hourly", "SELECT max(date) FROM hourly")[0][0])
    [documented] = blocks("docs/how-to/spark.md", "sql")
    describe, by_queue = filter(None, map(str.strip, documented.split(";")))
    described, _, whole, one_day, nothing, lists = query(
        tmp_path / "catalog",
        describe,
        by_queue,
        sums.format("crossdock.hourly"),
        f"SELECT count(*) FROM crossdock.attempts WHERE date = DATE '{day}' AND outcome = 'succeeded'",
        "SELECT count(*) FROM crossdock.hourly WHERE date = DATE '1970-01-01'",
        "SELECT count(*) FROM crossdock.links WHERE size(needs) > 0",
    )
    assert [(row[0], row[2]) for row in described] == [(name, meaning) for name, _, meaning in HOURLY.columns]
    assert [tuple(row) for row in whole] == [
        (str(date), *rest) for date, *rest in by_delta(grown.tables, "hourly", sums.format("hourly"))
    ]
    condition = f"date = DATE '{day}' AND outcome = 'succeeded'"
    [(expected,)] = by_delta(grown.tables, "attempts", f"SELECT count(*) FROM attempts WHERE {condition}")
    assert one_day == [[expected]] and expected > 0
    assert nothing == [[0]]
    [(linked,)] = by_delta(grown.tables, "links", "SELECT count(*) FROM links WHERE array_length(needs) > 0")
    assert lists == [[linked]] and linked > 0


def test_a_session_that_forgets_its_catalog_is_refused(spark: SparkSession, grown: Grown) -> None:
    with pytest.raises(PipelineError, match="this Spark session keeps its catalog in memory: start it with "):
        register_catalog(spark, str(grown.tables))


def test_the_format_reads_the_newest_version_of_a_table(spark: SparkSession, grown: Grown) -> None:
    register(spark)
    read = spark.read.format(FORMAT).option("what", "table").option("tables", str(grown.tables))
    frame = read.option("table", "links").load()
    assert [(field.name, field.metadata["comment"]) for field in frame.schema.fields] == [
        (name, meaning) for name, _, meaning in LINKS.columns
    ]
    expected = by_delta(grown.tables, "links", "SELECT seq, needs FROM links ORDER BY seq")
    assert [tuple(row) for row in frame.select("seq", "needs").orderBy("seq").collect()] == expected


def test_the_options_of_a_table_are_checked(grown: Grown) -> None:
    with pytest.raises(BadOption, match="option tables is missing"):
        reading({"what": "table", "table": "hourly"})
    with pytest.raises(BadOption, match="option table is missing"):
        reading({"what": "table", "tables": "x"})
    wrong = reading({"what": "table", "tables": str(grown.tables), "table": "hours"})
    with pytest.raises(BadOption, match="option table = 'hours' is not allowed; it must be one of lakes, "):
        schema_of(wrong)


def test_a_catalog_of_an_older_release_selects_its_own_columns(grown: Grown) -> None:
    options = reading({"what": "table", "tables": str(grown.tables), "table": "hourly"})
    schema = schema_of(options)
    older = type(schema)([field for field in schema.fields if field.name in ("arrived", "date")])
    reader = TableRows(options, older)
    rows = pa.Table.from_batches([batch for task in reader.partitions() for batch in reader.read(task)])
    assert rows.column_names == older.names
    assert rows.num_rows == by_delta(grown.tables, "hourly", "SELECT count(*) FROM hourly")[0][0]
