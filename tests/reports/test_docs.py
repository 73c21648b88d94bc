"""The commands of docs/how-to/reports.md, as they stand there."""

import re
import shlex
from pathlib import Path

import pytest

from crossdock.cli.main import main
from tests.reports.tables import LAST, Tables
from tests.support.doc_pages import blocks

PAGE = "docs/how-to/reports.md"


@pytest.fixture
def folder(shop: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "crossdock-data").symlink_to(shop.folder.parent)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(blocks(PAGE, "sh")).splitlines()
    commands = [line.split(" | ")[0] for line in lines if line.startswith("crossdock report ")]
    assert len(commands) == 8
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        assert main([*words, "--until", str(LAST)]) == 0, command
    assert capsys.readouterr().err.count("wrote ") == len(list(folder.glob("*.html"))) == 2


def test_the_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [block] = blocks(PAGE, "console")
    command, _, expected = block.removeprefix("$ crossdock ").partition("\n")
    assert main(command.split()) == 0
    assert re.fullmatch(re.escape(expected).replace("…", ".*"), capsys.readouterr().out, re.DOTALL)
