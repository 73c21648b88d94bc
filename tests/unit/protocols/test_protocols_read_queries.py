"""Protocols read the engine's state only through queries."""

import ast
from collections.abc import Iterator
from pathlib import Path

import crossdock.protocols
from crossdock.engine.state import EngineState

_FOLDER = Path(crossdock.protocols.__file__).parent

#: Methods and tables of the state. Names with an underscore are private.
_ATTRIBUTES = frozenset(name for name in dir(EngineState) if not name.startswith("_"))


def reads_of_state(text: str) -> Iterator[tuple[int, str]]:
    """Line and attribute of every `state.<attribute>` of EngineState, on any object."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name == "state":
                yield node.lineno, node.attr


def test_a_read_of_a_table_is_found() -> None:
    text = "def f(call, state):\n    call.state.jobs\n    g(state.queues)\n    state.encode()\n    job.state is state\n"
    assert list(reads_of_state(text)) == [(2, "jobs"), (3, "queues")]


def test_no_protocol_reads_a_table_of_the_engine() -> None:
    found = [
        f"{path.relative_to(_FOLDER)}:{line} state.{attribute}"
        for path in sorted(_FOLDER.rglob("*.py"))
        for line, attribute in reads_of_state(path.read_text())
    ]
    assert not found, "use engine/queries, engine/qless/queries or engine/resqu/queries instead"
