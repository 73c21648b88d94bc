"""docs/reference/tables.md is in step with the schemas, and its examples give the same answers in every engine."""

import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder

from crossdock.pipeline.reference import reference
from crossdock.pipeline.schemas.appended import REGISTRY, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.views import VIEWS
from crossdock.pipeline.table_examples import EXAMPLES
from tests.reports.tables import Tables
from tests.support.doc_pages import ROOT, blocks
from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.table_examples import answer, assert_same_answer, last_value

PAGE = "docs/reference/tables.md"
NAMES = [schema.name for schema in (*VIEWS, *ROW_LEVEL, *ROLLUPS)]


def test_the_page_is_in_step_with_the_schemas() -> None:
    assert (ROOT / PAGE).read_text("utf-8") == reference(), "run make docs"


def test_every_table_and_column_has_a_meaning_and_a_unique_name() -> None:
    for schema in (*VIEWS, *ROW_LEVEL, *ROLLUPS, *REGISTRY):
        assert len(set(schema.names)) == len(schema.names), schema.name
        assert set(schema.key) <= set(schema.names), schema.name
        assert all(meaning and not meaning.endswith(".") for _, _, meaning in schema.columns), schema.name
        assert re.fullmatch(r"[A-Z].*\.", schema.meaning), schema.name
    assert set(NAMES) <= set(EXAMPLES)


@pytest.mark.parametrize("name", NAMES)
def test_all_engines_give_the_same_answer(name: str, shop: Tables) -> None:
    example = EXAMPLES[name]
    table = DeltaTable(shop.folder / name)
    one = answer(QueryBuilder().register(name, table).execute(example.sql).read_all())
    assert one
    with duckdb.connect() as connection:
        files = connection.read_parquet(table.file_uris(), hive_partitioning=True, union_by_name=True)
        connection.register(name, files)
        assert_same_answer(one, answer(connection.sql(example.sql).to_arrow_table()))
    names = {"pl": pl, "scan": lambda table: pl.scan_delta(str(shop.folder / table))}
    assert_same_answer(one, answer(last_value(example.polars, names).collect().to_arrow()))


def test_the_ways_to_query_run_unchanged(shop: Tables) -> None:
    ways = [block for block in blocks(PAGE, "python") if block.startswith(("from", "import")) and "spark" not in block]
    assert len(ways) == 3
    for way in ways:
        ran = subprocess.run(
            [sys.executable, "-c", way],
            cwd=Path(shop.folder).parent,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=PROGRAM_PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert "mail" in ran.stdout
