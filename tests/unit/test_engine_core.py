"""The core of the engine knows no protocol: it neither imports one nor names its data."""

import ast
from pathlib import Path
from typing import Final

import pytest

import crossdock
from crossdock.engine import hooks
from crossdock.model.protocol_data import ProtocolData, QlessData, ResquData
from tests.unit.test_arrows import imported

ENGINE: Final = Path(crossdock.__file__).parent / "engine"
CORE: Final = ("jobs", "index", "records", "keyspace")
DATA: Final = frozenset(each.__name__ for each in ProtocolData.__subclasses__())


@pytest.mark.parametrize("room", CORE)
def test_the_core_imports_no_protocol(room: str) -> None:
    found = [
        (file.name, name)
        for file in (ENGINE / room).rglob("*.py")
        for _, name in imported(ast.parse(file.read_text("utf-8")), ["crossdock", "engine", room])
        if name.startswith(("crossdock.engine.qless", "crossdock.engine.resqu"))
    ]
    assert found == []


@pytest.mark.parametrize("room", CORE)
def test_the_core_names_no_protocol_data(room: str) -> None:
    found = [
        (file.name, node.lineno)
        for file in (ENGINE / room).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if (isinstance(node, ast.Name) and node.id in DATA) or (isinstance(node, ast.alias) and node.name in DATA)
    ]
    assert found == []


@pytest.mark.parametrize(("own", "other"), [("qless", "resqu"), ("resqu", "qless")])
def test_protocols_of_the_engine_do_not_import_each_other(own: str, other: str) -> None:
    found = [
        (file.name, name)
        for file in (ENGINE / own).rglob("*.py")
        for _, name in imported(ast.parse(file.read_text("utf-8")), ["crossdock", "engine", own])
        if name.startswith(f"crossdock.engine.{other}")
    ]
    assert found == []


def test_hooks_belong_to_protocols_that_have_some() -> None:
    tables = [each for each in vars(hooks).values() if isinstance(each, dict)]
    keys = {key for table in tables for key in table if isinstance(key, type) and issubclass(key, ProtocolData)}
    assert keys == {QlessData, ResquData}
