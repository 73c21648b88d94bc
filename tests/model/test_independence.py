"""The reference models share no code with what they check. They import values of `crossdock.model` only."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
MODULES: Final = [
    *sorted((HERE / "reference").rglob("*.py")),
    *sorted((HERE / "resqu_reference").rglob("*.py")),
    HERE / "key_reference.py",
]
#: Modules of the project, by how their names begin.
ALLOWED: Final = (
    "crossdock.model.",
    "tests.model.reference.",
    "tests.model.resqu_reference.",
)


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def not_independent(source: str) -> list[str]:
    """Imports of the project's own code beyond model values and the reference itself."""
    return [
        name
        for name in imported(source)
        if name.split(".")[0] in ("crossdock", "tests", "bench") and not name.startswith(ALLOWED)
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(HERE)))
def test_a_reference_module_imports_only_model_values(module: Path) -> None:
    assert not_independent(module.read_text("utf-8")) == []


@pytest.mark.parametrize("package", ["engine", "protocols", "server", "journal", "lake"])
def test_an_import_of_checked_code_is_found(package: str) -> None:
    assert not_independent(f"from crossdock.{package} import x") == [f"crossdock.{package}.x"]
    assert not_independent(f"def f():\n    import crossdock.{package}.x") == [f"crossdock.{package}.x"]


def test_an_import_through_a_test_module_is_found() -> None:
    assert not_independent("from tests.model.rig import Rig") == ["tests.model.rig.Rig"]
