"""mypy and pyright report each wrong call of a task, and no right one."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.project_files import ROOT

_CASES: Final = Path(__file__).with_name("typing_cases.txt").read_text("utf-8")
_EXPECTED: Final = [number for number, line in enumerate(_CASES.splitlines(), 1) if line.endswith("# error")]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.py"
    path.write_text(_CASES, "utf-8")
    return path


def test_mypy_reports_the_wrong_calls(cases: Path) -> None:
    options = ["--strict", "--no-error-summary", "--no-pretty", "--follow-imports=silent"]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", *options, str(cases)],
        cwd=ROOT,
        env={"PATH": "", "MYPYPATH": "src", "MYPY_CACHE_DIR": str(cases.parent / "cache")},
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
        check=False,
    )
    reported = re.findall(r"^\S*cases\.py:(\d+): error: ", ended.stdout, re.MULTILINE)
    assert sorted({int(line) for line in reported}) == _EXPECTED, ended.stdout + ended.stderr


def test_pyright_reports_the_wrong_calls(cases: Path) -> None:
    beside = Path(sys.executable).with_name("pyright")
    pyright = str(beside) if beside.exists() else shutil.which("pyright")
    if pyright is None:
        pytest.skip("PYRIGHT IS NOT INSTALLED: its types are not checked; pip install pyright")
    config = cases.with_name("pyrightconfig.json")
    config.write_text(json.dumps({"extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11"}))
    ended = subprocess.run(
        [pyright, "--project", str(config), "--pythonpath", sys.executable, "--outputjson"],
        cwd=cases.parent,
        capture_output=True,
        text=True,
        timeout=PROGRAM_PATIENCE_S,
        check=False,
    )
    found = json.loads(ended.stdout)["generalDiagnostics"]
    reported = {each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"}
    assert sorted(reported) == _EXPECTED, ended.stdout
