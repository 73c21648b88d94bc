"""The core of the engine does not name the protocol data of any protocol (test_imports.py: it imports none either)."""

import ast
from pathlib import Path
from typing import Final

import pytest

import crossdock
from crossdock.engine import hooks
from crossdock.model.protocol_data import ProtocolData, QlessData, ResquData

ENGINE: Final = Path(crossdock.__file__).parent / "engine"
CORE: Final = ("jobs", "index", "records", "keyspace")
DATA: Final = frozenset(each.__name__ for each in ProtocolData.__subclasses__())


@pytest.mark.parametrize("room", CORE)
def test_the_core_names_no_protocol_data(room: str) -> None:
    found = [
        (file.name, node.lineno)
        for file in (ENGINE / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if (isinstance(node, ast.Name) and node.id in DATA) or (isinstance(node, ast.alias) and node.name in DATA)
    ]
    assert found == []


def test_every_hook_is_of_a_known_class_of_protocol_data() -> None:
    tables = [each for each in vars(hooks).values() if isinstance(each, dict)]
    keys = {key for table in tables for key in table if isinstance(key, type) and issubclass(key, ProtocolData)}
    assert keys == {QlessData, ResquData}
