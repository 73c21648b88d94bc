"""The page about tasks: its tasks run in a worker, and its programs print what their comments say."""

import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from crossdock.app.app import App
from tests.support.app_worker import work_off
from tests.support.doc_pages import blocks
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

_PAGE: Final = "docs/how-to/tasks.md"
_MODULE: Final = "# tasks.py\n"
_PRINTS: Final = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
_PROGRAMS: Final = [each for each in blocks(_PAGE, "python") if not each.startswith(_MODULE)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with tasks.py of the page, for a server and a worker that run."""
    folder = tmp_path_factory.mktemp("page")
    with Server(folder / "data") as server:
        text = "".join(each for each in blocks(_PAGE, "python") if each.startswith(_MODULE))
        (folder / "tasks.py").write_text(text.replace("localhost:7419", f"127.0.0.1:{server.port}"))
        app = _load(folder / "tasks.py")
        queues = sorted({task.settings.queue for task in app.tasks.values()})
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(0.01):
                work_off(app, queues)

        worker = threading.Thread(target=work)
        worker.start()
        yield folder
        stop.set()
        worker.join(PATIENCE_S)
        app.close()


def _load(path: Path) -> App:
    spec = importlib.util.spec_from_file_location("tasks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tasks"] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["tasks"]
    app: App = module.app
    return app


@pytest.mark.parametrize("program", _PROGRAMS, ids=[f"program {at}" for at, _ in enumerate(_PROGRAMS, 1)])
def test_a_program_of_the_page_prints_what_it_says(program: str, folder: Path) -> None:
    (folder / "program.py").write_text(program)
    source = os.environ.get("PYTHONPATH", "")
    ended = subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{source}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    expected = "\n".join(_PRINTS.findall(program))
    assert re.fullmatch(re.escape(expected).replace("…", ".*"), ended.stdout.rstrip()), ended.stdout
