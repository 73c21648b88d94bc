"""The comparison of Python libraries runs with Crossdock alone. Speed is not tested."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PROGRAM_PATIENCE_S

pytestmark = [pytest.mark.clients, pytest.mark.slow]


def test_crossdock_is_measured(tmp_path: Path) -> None:
    words = ["--only", "Crossdock", "--jobs", "1000", "--latencies", "20", "--folder", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "bench.worker.run", *words],
        cwd=Path(__file__).parents[2],
        env={name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")},
        check=False,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (row,) = [line for line in ran.stdout.splitlines() if line.startswith("| Crossdock ")]
    assert len(row.split("|")) == 10
    assert " - " not in row, "a figure is missing"
    assert list(tmp_path.iterdir()) == []
