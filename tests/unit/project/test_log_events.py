"""Every event in the log has a stable name, and the manual lists it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import crossdock

ROOT: Final = Path(crossdock.__file__).parent
MANUAL: Final = Path(__file__).parents[3] / "docs" / "how-to" / "production.md"

#: Functions that log an event, and the index of its name among their arguments.
FUNCTIONS: Final = {"event": 2, "limited_event": 2, "_limited": 1, "report": 0, "_report": 0}
_NAME: Final = re.compile(r"[a-z]+(-[a-z]+)*")


def events() -> Iterator[tuple[str, str]]:
    """The file and name of each event in the source."""
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and file.name != "report.py":  # whose `report` makes reports
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                at = FUNCTIONS.get(called, len(node.args))
                name = node.args[at] if at < len(node.args) else None
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield str(file.relative_to(ROOT)), name.value


def listed() -> set[str]:
    """The names in the first column of the table of events."""
    table = MANUAL.read_text("utf-8").split("| Event | Level | When |")[1].split("\n\n")[0]
    return {name for row in table.splitlines() if row for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_the_manual_lists_every_event() -> None:
    found = {name for _, name in events()} | {"process-failed"}  # which is logged without the helper
    assert {"lease-expired", "wrong-password", "listening"} <= found
    assert found == listed()


def test_names_of_events_are_short_words() -> None:
    assert not [each for each in events() if not _NAME.fullmatch(each[1]) or len(each[1]) > 25]


def test_every_line_is_logged_as_an_event() -> None:
    """A call of `log.warning` would have no name and no fields."""
    levels = {"debug", "info", "warning", "error", "critical", "exception"}
    plain = [
        (str(file.relative_to(ROOT)), node.lineno)
        for file in ROOT.rglob("*.py")
        if file.name != "logs.py" and "pipeline" not in file.parts and "cli" not in file.parts
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in levels
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "log"
    ]
    assert not plain
