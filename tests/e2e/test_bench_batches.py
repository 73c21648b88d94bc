"""`python -m bench.batches` at a small scale: it measures and checks; the values do not matter."""

from pathlib import Path

import pytest
from bench.batches import main


@pytest.mark.slow
def test_all_figures_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bench.batches.CRON", 100)
    code = main(["--jobs", "5000", "--runs", "1"])
    said = capsys.readouterr().out
    for what in ("batch: adding", "batch: settling", "batch: all", "unique: push", "100 idle cron entries"):
        assert f"| {what}" in said
    assert "pushes per second on a server: plain " in said
    assert code == ("| missed |" in said)
    assert list(tmp_path.iterdir()) == []
