"""The commands of docs/how-to/reports.md run unchanged, and its figures are right."""

import re
import shlex
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.pipeline.queueing import mean_wait
from tests.reports.tables import LAST, Tables
from tests.support.doc_pages import blocks

PAGE = "docs/how-to/reports.md"


@pytest.fixture
def folder(shop: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "crossdock-data").symlink_to(shop.folder.parent)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(blocks(PAGE, "sh")).splitlines()
    commands = [line.split(" | ")[0] for line in lines if line.startswith("crossdock report ")]
    assert len(commands) == 12
    for command in commands:
        words = shlex.split(command, comments=True)[1:]
        assert main([*words, "--until", str(LAST)]) == 0, command
    assert capsys.readouterr().err.count("wrote ") == len(list(folder.glob("*.html"))) == 2


def test_the_example_output_is_current(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [block] = blocks(PAGE, "console")
    command, _, expected = block.removeprefix("$ crossdock ").partition("\n")
    assert main(command.split()) == 0
    assert re.fullmatch(re.escape(expected).replace("…", ".*"), capsys.readouterr().out, re.DOTALL)


def test_the_settings_of_the_page_are_objectives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [settings] = blocks(PAGE, "toml")
    (folder / "crossdock.toml").write_text(settings, "utf-8")
    assert main(["report", "slo", "--until", str(LAST)]) == 0
    assert "99 % done in 5m" in capsys.readouterr().out


def test_the_waits_of_the_example() -> None:
    waits = [mean_wait(workers, 3 / 3_600, 3_600.0, 1.0) for workers in (4, 6, 8)]
    assert [round(waits[0] / 60), round(waits[1] / 60), round(waits[2])] == [31, 2, 9]
