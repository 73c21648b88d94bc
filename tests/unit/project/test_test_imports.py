"""Test modules do not import each other. What several of them use is in `tests/support` or in a module of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import tests

ROOT: Final = Path(tests.__file__ or "").parent


def imported_test_modules(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *parts = name.split(".")
            if package == "tests" and any(part.startswith("test_") for part in parts):
                yield name


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_no_module_imports_a_test_module(file: Path) -> None:
    assert list(imported_test_modules(file.read_text("utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "from tests.unit.model.test_states import x",
        "from tests.unit import test_states",
        "import tests.unit.model.test_states",
        "def f():\n    from tests.unit import test_states",
    ],
)
def test_an_import_of_a_test_module_is_found(source: str) -> None:
    assert list(imported_test_modules(source)) != []


def test_an_import_of_support_is_allowed() -> None:
    assert list(imported_test_modules("from tests.support.picture import picture")) == []
