"""What all tables say, to be compared: rows in order, and sums that were made in another order as near as can be."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crossdock.pipeline.catalog import FACTS, VIEWS
from crossdock.pipeline.context import PipelineContext

PUBLIC = ["attempts", *(view.name for view in VIEWS)]


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """As a reader without Spark sees them."""
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
                    # m2 of nearly equal values is what is left of much larger ones.
                    expected = pytest.approx(expected, rel=1e-9, abs=1e-9)
                assert value == expected, (name, column, left, right)


def versions(works: PipelineContext) -> dict[str, dict[str, list[str]]]:
    """The files of each day of each table: what a write touched is what differs."""
    found: dict[str, dict[str, list[str]]] = {}
    for each in (*FACTS, *VIEWS):
        days = found.setdefault(each.name, {})
        for file in works.catalog[each.name].files():
            days.setdefault(file.date.isoformat(), []).append(file.path)
    return found
