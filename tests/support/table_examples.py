"""Runs the examples of docs/reference/tables.md, and makes the answers of different engines comparable."""

import ast
import datetime as dt
from runpy import run_path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa
import pytest


def last_value(code: str, names: dict[str, Any]) -> Any:
    """Run code and return the value of its last expression."""
    tree = ast.parse(code.strip())
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    tree.body.append(ast.Assign([ast.Name("value_of_example", ast.Store())], last.value))
    with NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as script:
        script.write(ast.unparse(ast.fix_missing_locations(tree)))
        script.flush()
        return run_path(script.name, names)["value_of_example"]


def answer(table: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table. Times are compared as seconds: engines show them in different zones."""
    rows: list[dict[str, Any]] = pa.table(table).to_pylist()
    return [
        {name: value.timestamp() if isinstance(value, dt.datetime) else value for name, value in row.items()}
        for row in rows
    ]


def assert_same_answer(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert [list(row) for row in one] == [list(row) for row in other]
    for left, right in zip(one, other, strict=True):
        assert {name: pytest.approx(float(value)) if isinstance(value, float) else value
                for name, value in left.items()} == right  # fmt: skip
