"""The rows of all tables in order, for comparison. Sums that were added in another order may differ slightly."""

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS, ROLLUPS, ROW_LEVEL
from crossdock.pipeline.schemas.views import VIEWS

PUBLIC = [schema.name for schema in (ATTEMPTS, LINKS, *VIEWS)]


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table, read without Spark."""
    found = pl.read_delta(tables / name).to_dicts()
    return sorted(found, key=lambda row: [str(value) for value in row.values() if not isinstance(value, float)])


def picture(tables: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: rows(tables, name) for name in PUBLIC}


def assert_same(one: dict[str, list[dict[str, Any]]], other: dict[str, list[dict[str, Any]]]) -> None:
    assert list(one) == list(other)
    for name in one:
        assert len(one[name]) == len(other[name]), name
        for left, right in zip(one[name], other[name], strict=True):
            for column, value in left.items():
                expected = right[column]
                if isinstance(value, float):
                    # m2 of nearly equal values is a difference of much larger numbers.
                    expected = pytest.approx(expected, rel=1e-9, abs=1e-9)
                assert value == expected, (name, column, left, right)


def versions(tables: Tables) -> dict[str, dict[dt.date, list[str]]]:
    """The files of each day of each table. A write changes the files of the days it touches."""
    found: dict[str, dict[dt.date, list[str]]] = {}
    for schema in (*ROW_LEVEL, *ROLLUPS, *VIEWS):
        days = found.setdefault(schema.name, {})
        for file in tables[schema.name].files():
            days.setdefault(file.date, []).append(file.path)
    return found
