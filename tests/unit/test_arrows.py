"""Arrows point inward: which package may import which. A wrong one fails here, with file and line."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import crossdock

ROOT: Final = Path(crossdock.__file__).parent

_INNER: Final = {
    "model": {"model"},
    "engine": {"model", "engine"},
    "journal": {"model", "engine", "journal"},
    "lake": {"model", "journal", "lake"},
    "pipeline": {"model", "lake", "client", "pipeline"},
    "protocols": {"model", "engine", "protocols"},
    "client": {"model", "protocols", "client"},
    "settings": {"model", "settings"},
    "server": {"model", "engine", "journal", "lake", "protocols", "settings", "server"},
}
ALLOWED: Final = _INNER | {
    "cli": {*_INNER, "cli"},
    "__main__": {"cli"},
    "__init__": set[str](),
}


def imported(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything imported, wherever in the file. `package` resolves relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module or ""]).rstrip(".")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def wrong_arrows(source: str, package: list[str], room: str) -> list[tuple[int, str]]:
    wrong = []
    for line, name in imported(ast.parse(source), package):
        parts = name.split(".")
        is_ours = parts[0] == "crossdock" and len(parts) > 1
        if is_ours and parts[1] != "__version__" and parts[1] not in ALLOWED[room]:
            wrong.append((line, name))
    return wrong


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_import_points_inward(file: Path) -> None:
    inside = file.relative_to(ROOT).with_suffix("").parts
    assert inside[0] in ALLOWED, f"{inside[0]} is new: say in ALLOWED what it may import"
    assert wrong_arrows(file.read_text("utf-8"), ["crossdock", *inside[:-1]], inside[0]) == []


@pytest.mark.parametrize(
    ("source", "package"),
    [
        ("from crossdock.journal.files import write_whole", "crossdock.protocols"),
        ("import crossdock.server.app", "crossdock.journal"),
        ("from crossdock import settings", "crossdock.engine"),
        ("def f():\n    from crossdock.engine import engine", "crossdock.model"),
        ("from ..server import room", "crossdock.protocols"),
        ("from crossdock.server import address", "crossdock.client"),
        ("from ...journal.port import Journal", "crossdock.protocols.faktory"),
    ],
)
def test_a_wrong_arrow_is_seen(source: str, package: str) -> None:
    parts = package.split(".")
    assert wrong_arrows(source, parts, parts[1]) != []


def test_right_arrows_are_left_alone() -> None:
    source = "import os\nfrom crossdock import __version__\nfrom crossdock.model.job import Job\nfrom . import lines\n"
    assert wrong_arrows(source, ["crossdock", "protocols"], "protocols") == []


def test_only_the_journal_opener_imports_its_adapter() -> None:
    adapter = "crossdock.journal.sqlite"
    importers = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        for _, name in imported(ast.parse(file.read_text("utf-8")), [])
        if name == adapter or name.startswith(f"{adapter}.")
    }
    assert {name for name in importers if not name.startswith("journal/sqlite/")} == {"journal/open.py"}
