"""The wheel without extras in an environment of its own: its packages, its command line, a push and a worker."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.program import Program
from tests.support.patience import PATIENCE_S, PROGRAM_PATIENCE_S
from tests.support.server import Server

pytestmark = [pytest.mark.clients, pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]

#: What pip installs: the dependencies, and what they need themselves. pip may come with setuptools.
PACKAGES: Final = {"click", "cronsim", "crossdock", "msgspec", "rich", "sortedcontainers", "tzdata"}
THEIRS: Final = {"markdown-it-py", "mdurl", "pygments"}
TOOLS: Final = {"pip", "setuptools"}

TOUR: Final = """
import sys
from crossdock import App

app = App(name="tour")

@app.task(keep_result="1h")
def add(a: int, b: int) -> int:
    return a + b

if __name__ == "__main__":
    from tour import add
    print("result", add.push(40, b=2).result(timeout=60))
    loaded = {name.partition(".")[0] for name in sys.modules}
    print("loaded", *sorted(loaded & {"apsw", "deltalake", "jinja2", "litestar", "pyarrow", "uvicorn", "uvloop"}))
"""

TESTED: Final = """
def test_a_push(jobs):
    from tour import add
    handle = add.push(1, 2)
    jobs.drain()
    assert handle.result(timeout=1) == 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("light")


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    """Built from a copy, because setuptools writes into the folder that it builds."""
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    run(*command, str(source))
    (found,) = folder.glob("crossdock-*.whl")
    return found


@pytest.fixture(scope="module")
def programs(folder: Path, wheel: Path) -> Path:
    """The `bin` folder of an environment that has the wheel and what pip finds for it."""
    run(sys.executable, "-m", "venv", str(folder / "venv"))
    pip = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    ran = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, check=False)
    if ran.returncode and "No matching distribution" in ran.stderr:
        pytest.skip("NOT TESTED: the light install, because pip reaches no package index from here")
    assert ran.returncode == 0, ran.stderr
    return folder / "venv" / "bin"


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """The server of this repository, which has all extras."""
    with Server(folder / "data", protocols=("faktory", "http")) as running:
        yield running


def run(*command: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PROGRAM_PATIENCE_S, check=False
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def alone(**variables: str) -> dict[str, str]:
    """An environment in which only the wheel's crossdock can be found."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **variables}


def test_few_packages_are_installed(programs: Path) -> None:
    listed = run(str(programs / "python"), "-m", "pip", "list", "--format=freeze", environment=alone())
    names = {line.partition("==")[0].lower() for line in listed.splitlines()}
    assert names - TOOLS == PACKAGES | THEIRS
    run(str(programs / "python"), "-m", "pip", "check", environment=alone())


def test_the_command_line_runs(programs: Path, folder: Path) -> None:
    crossdock = str(programs / "crossdock")
    assert run(crossdock, "--version", environment=alone()).startswith("crossdock ")
    assert "worker" in run(crossdock, "--help", environment=alone())
    assert "MODULE[:APP]" in run(crossdock, "worker", "run", "--help", environment=alone())
    ran = subprocess.run(
        [crossdock, "up"], cwd=folder, env=alone(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == 2
    assert re.fullmatch(r"crossdock: \w+ is not installed; .* pip install 'crossdock\[server\]'\n", ran.stderr)


def test_a_job_is_pushed_and_listed_from_elsewhere(programs: Path, server: Server) -> None:
    crossdock = str(programs / "crossdock")
    where = f"faktory=127.0.0.1:{server.ports['faktory']}"
    jid = run(crossdock, "push", "mail", "welcome", "[42]", "--listen", where, environment=alone()).strip()
    url = f"http://127.0.0.1:{server.ports['http']}"
    assert jid in run(crossdock, "--server", url, "job", "list", "--json", environment=alone())


def test_a_worker_executes_a_task_of_the_client(programs: Path, server: Server, folder: Path) -> None:
    tour = folder / "tour"
    tour.mkdir()
    (tour / "tour.py").write_text(TOUR)
    url = f"crossdock://127.0.0.1:{server.ports['faktory']}"
    environment = alone(CROSSDOCK_URL=url, PYTHONPATH=str(tour), TMPDIR=str(folder))
    with Program([str(programs / "crossdock"), "worker", "run", "tour:app"], environment):
        out = run(str(programs / "python"), str(tour / "tour.py"), environment=environment)
    assert out == "result 42\nloaded\n"


def test_the_plugin_is_found_by_pytest(programs: Path, folder: Path) -> None:
    """pytest is not a dependency: a project that tests its tasks has it."""
    run(str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pytest")
    tested = folder / "tested"
    tested.mkdir()
    (tested / "tour.py").write_text(TOUR)
    (tested / "test_tour.py").write_text(TESTED)
    (tested / "pytest.ini").write_text("[pytest]\ncrossdock_app = tour:app\npythonpath = .\nfilterwarnings = error\n")
    out = run(str(programs / "python"), "-m", "pytest", "-q", cwd=tested, environment=alone())
    assert "1 passed" in out
