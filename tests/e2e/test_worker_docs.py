"""The examples of docs/how-to/worker.md, run unchanged against a real server."""

import shlex
import sys
from pathlib import Path

import pytest

from crossdock.client.client import Client
from crossdock.client.jobs import NewJob
from tests.support.command_line import Operator
from tests.support.doc_pages import blocks
from tests.support.patience import wait_until
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.clients, pytest.mark.slow]

PAGE = "docs/how-to/worker.md"


def test_the_examples_work(tmp_path: Path) -> None:
    [module] = blocks(PAGE, "python")
    (tmp_path / "shop.py").write_text(module)
    runs = [shlex.split(line) for line in blocks(PAGE, "sh")]
    run, reload, check = (words[1:] for words in runs)
    assert (run[:2], reload[:2]) == (["worker", "run"], ["worker", "run"])
    environment = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with Server(tmp_path / "data") as server, Client(server.url) as client:
        for number, words in enumerate((run, reload)):
            target, *options = words[2:]
            worker = WorkerProcess(
                tmp_path / f"run-{number}", server.url, *options, target=target, app_dir=tmp_path,
                environment=environment,
            )  # fmt: skip
            with worker:
                jid = client.push(NewJob(kind="welcome", args=[7], queue="mail", keep_result_s=60))
                assert client.result(jid, timeout_s=60) == b'"welcome, user 7"'
                wait_until(lambda file=worker.status: file.exists(), "the status file")  # type: ignore[misc]
                operator = Operator(tmp_path)
                status = ("--status", str(worker.status))
                wait_until(lambda: operator.run(*check, *status).code == 0, "a good check")  # noqa: B023
                assert worker.stop() == 0


def test_the_unit_file_runs_an_existing_command(tmp_path: Path) -> None:
    [unit] = blocks(PAGE, "ini")
    [start] = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(start)
    assert words[0].endswith("/crossdock")
    ended = Operator(tmp_path).run(*words[1:])
    assert "cannot import shop" in ended.err, (sys.executable, ended)
