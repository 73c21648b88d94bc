"""The benchmarks of operator requests and of the dashboard run and send each request. Speed is not tested."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import CLEAN
from tests.support.patience import PROGRAM_PATIENCE_S

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_request_is_measured(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.operate", "--quick", "--folder", str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, cwd=ROOT, env=CLEAN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for what in ("first page", "next page of 200", "a rare kind", "count of a kind", "queues", "status"):
        assert f"| {what}" in done.stdout
    assert "p99 of any page" in done.stdout


@pytest.mark.slow
def test_every_page_of_the_dashboard_is_measured(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.web", "--quick", "--folder", str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, cwd=ROOT, env=CLEAN,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for what in ("/ ", "/jobs ", "/queues/queue-7", "/metrics", "whole jobs/s, dashboard open / closed"):
        assert f"| {what}" in done.stdout
