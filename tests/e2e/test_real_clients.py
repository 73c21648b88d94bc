"""Unmodified Faktory clients: each pushes, works, fails, retries and terminates when the server requests it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crossdock.client.admin import AdminClient
from tests.e2e.program import Program
from tests.support.faktory_client import Client
from tests.support.patience import PROGRAM_PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.clients

PROGRAMS = Path(__file__).with_name("programs")
NODE_CLIENT = "faktory-worker@4.7.1"

#: Prefixes of the output lines that are checked; a client may print other lines.
CHECKED = ("pushed", "refused", "mutated", "paused", "info")


class User(NamedTuple):
    """A client program: its commands and its expected output."""

    command: tuple[str, ...]
    environment: dict[str, str]
    pushed: list[str]
    sums: set[str]
    flaky: str


def node_modules() -> Path:
    """The folder of the Node client. It is installed once, beside the Python packages."""
    folder = Path(sys.prefix) / "node"
    if not (folder / "node_modules" / "faktory-worker").exists():
        folder.mkdir(exist_ok=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--no-save", "--prefix", str(folder), NODE_CLIENT],
            check=True,
            capture_output=True,
            timeout=PROGRAM_PATIENCE_S,
        )
    return folder / "node_modules"


def pypi_faktory() -> User:
    pushed = ["pushed True", "pushed True", "pushed True"]
    return User((sys.executable, str(PROGRAMS / "pypi_faktory.py")), {}, pushed, {"worked 3"}, "faktory-flaky")


def pypi_pyfaktory() -> User:
    pushed = [
        "pushed True",
        "refused {'short': 'jobs must have a reasonable jid parameter'}",
        "pushed True",
        "refused {}",
        "mutated True",
        "mutated True",
        "mutated True",
        "paused True True",
        "info {'default': 12} 0",
    ]
    sums = {"worked 3", *(f"worked {2 * n}" for n in range(10))}
    return User((sys.executable, str(PROGRAMS / "pypi_pyfaktory.py")), {}, pushed, sums, "pyfaktory-flaky")


def npm_faktory_worker() -> User:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("NPM'S faktory-worker WAS NOT TESTED: npm or node is missing")
    pushed = [
        "pushed node-add-1",
        "refused short jobs must have a reasonable jid parameter",
        "pushed node-flaky",
        "mutated OK",
        "mutated OK",
        "mutated OK",
        'info {"default":7} 0',
    ]
    sums = {"worked 3", *(f"worked {2 * n}" for n in range(5))}
    environment = {"NODE_PATH": str(node_modules())}
    return User(("node", str(PROGRAMS / "npm_faktory_worker.js")), environment, pushed, sums, "node-flaky")


@pytest.fixture(params=[pypi_faktory, pypi_pyfaktory, npm_faktory_worker], ids=lambda user: user.__name__)
def user(request: pytest.FixtureRequest) -> User:
    made: User = request.param()
    return made


@pytest.fixture(params=["", "s3cret"], ids=["open", "password"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    settings = {"faktory.password": request.param} if request.param else {}
    with Server(tmp_path / "data", settings) as server:
        yield server


def wait_for_retry(client: Client) -> None:
    wait_until(lambda: client.sizes()["retries"] == 1, "the failure is reported")


def test_jobs_run_from_push_to_completion(server: Server, user: User) -> None:
    with Program([*user.command, "push", server.url], user.environment) as producer:
        said = [line for line in producer.end() if line.split()[0] in CHECKED]
        assert said == user.pushed
        assert producer.code == 0
    work = [*user.command, "work", server.url, "worker-0001"]
    with server.client() as client, Program(work, user.environment) as worker:
        for line in user.sums:
            worker.wait_for(line)
        worker.wait_for("failing once")
        wait_for_retry(client)
        client.mutate("requeue", "retries", jids=[user.flaky])
        worker.wait_for("worked once")
        wait_until(lambda: not client.sizes()["working"], "the success is reported")
        total = client.info()["faktory"]
        assert total["total_failures"] == 1
        assert total["total_processed"] == len(user.sums) + 2
        assert total["sets"]["retries"] == total["total_enqueued"] == 0
        assert total["tasks"]["Workers"]["size"] == 1
        beat = client.call("BEAT", {"wid": "worker-0001", "current_state": "terminate"})
        assert beat == b'{"state":"terminate"}'
        worker.end()  # its next heartbeat returns terminate
        wait_until(
            lambda: not client.info()["faktory"]["tasks"]["Workers"]["size"], "the removal of the worker's registration"
        )


def test_plain_node_errors_are_grouped_by_their_message(tmp_path: Path) -> None:
    """The client sends the error's code as its type. A plain error has no code, so the type is `undefined`."""
    user = npm_faktory_worker()
    with Server(tmp_path / "data") as server, server.client() as client:
        for number, kind in enumerate(("broken", "broken", "coded")):
            client.push(f"plain-{number:04}", jobtype=kind, args=[4_711 + number], retry=-1)
        with Program([*user.command, "work", server.url, "worker-0001"], user.environment):
            wait_until(lambda: client.sizes()["dead"] == 3, "all failures are reported")
        with AdminClient(server.data) as control:
            groups = {row["failure"]: row["jobs"] for row in control.rows("failures")}
            [newest] = [row["newest"] for row in control.rows("failures") if row["jobs"] == 2]
            raw = control.job("plain-0000")["job"]["error"]
    assert groups == {"order N has no address": 2, "ECONNREFUSED": 1}
    assert newest["error"].startswith("order 47") and raw["group"] == "undefined"


def test_a_wrong_password_is_reported(tmp_path: Path, user: User) -> None:
    with Server(tmp_path / "data", {"faktory.password": "s3cret"}) as server:
        url = server.url.replace("s3cret", "wrong")
        with Program([*user.command, "push", url], user.environment) as producer:
            assert "password" in " ".join(producer.end()).lower()
            assert producer.code != 0
        with server.client() as client:
            assert client.sizes()["enqueued"] == 0
