"""The example applications: their own tests, and the shop with a real server, a real worker and a producer in PHP."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.client import Client
from tests.support.command_line import Operator
from tests.support.examples import EXAMPLES, environment, need, run_own_tests
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.clients, pytest.mark.slow]

SHOP = EXAMPLES / "shop"


@pytest.mark.parametrize(
    ("example", "packages"),
    [
        ("shop", ()),
        ("fastapi", ("fastapi", "httpx2")),
        ("django", ("django",)),
        ("flask", ("flask",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_tests_of_an_example_pass(example: str, packages: tuple[str, ...]) -> None:
    need(*packages)
    assert " passed" in run_own_tests(example)


class Shop:
    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self.outbox = folder / "outbox.txt"
        self.environment = environment(
            CROSSDOCK_URL=server.url,
            CROSSDOCK_REDIS=f"tcp://127.0.0.1:{server.ports['redis']}",
            SHOP_OUTBOX=str(self.outbox),
        )
        self.worker = WorkerProcess(folder, server.url, target="shop.tasks", app_dir=SHOP, environment=self.environment)
        self.operator = Operator.at(server.data.parent, {})

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=SHOP, env=self.environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S
        )
        return done.stdout

    def wait_for(self, line: str) -> list[str]:
        """Wait for a line in the outbox. Returns all lines."""

        def lines() -> list[str]:
            return self.outbox.read_text("utf-8").splitlines() if self.outbox.exists() else []

        wait_until(lambda: line in lines(), lambda: f"{line!r} in {lines()}; the worker's log:\n{self.worker.log()}")
        return lines()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with Server(tmp_path / "data", protocols=("faktory", "redis")) as server:
        shop = Shop(server, tmp_path / "shop")
        with shop.worker:
            yield shop


def test_an_order_is_packed_and_then_shipped(shop: Shop) -> None:
    shop.run(sys.executable, "-m", "shop.orders", "1001", "tea", "cup")
    shipped = "shipped: order 1001"
    lines = shop.wait_for(shipped)
    assert {"packed: tea of order 1001", "packed: cup of order 1001"} <= set(lines[: lines.index(shipped)])
    shop.wait_for("mail: order 1001 with tea, cup")
    assert shop.worker.stop() == 0


def test_a_job_of_php_reaches_the_python_worker(shop: Shop) -> None:
    if shutil.which("php") is None:
        pytest.skip("THE EXAMPLE WAS NOT TESTED: php is missing")
    assert shop.run("php", "picture.php", "cat.jpg", "640") == "pushed cat.jpg\n"
    shop.wait_for("resized: cat.jpg to 640")


def test_the_schedule_is_on_the_server_and_can_be_run_at_once(shop: Shop) -> None:
    [schedule] = shop.operator.json("schedule", "list")["schedules"]
    assert (schedule["name"], schedule["source"]) == ("shop:report", "app")
    shop.operator.output("schedule", "run", "shop:report")
    shop.wait_for("report")


#: Signs a user up in the web application and prints the ID of the job.
SIGN_UP = {
    "fastapi": """
from fastapi.testclient import TestClient
from webapp.main import api

with TestClient(api) as web:
    print(web.post("/users", json={"name": "Ada"}).json()["job"])
""",
    "flask": """
from webapp.web import web

print(web.test_client().post("/users", json={"name": "Ada"}).json["job"])
""",
    "django": """
from mysite import worker
from django.core.management import call_command
from django.test import Client

call_command("migrate", run_syncdb=True, verbosity=0)
print(Client().post("/users", {"name": "Ada"}, content_type="application/json").json()["job"])
""",
}


@pytest.mark.parametrize(
    ("example", "packages", "target"),
    [
        ("fastapi", ("fastapi", "httpx2"), "webapp.tasks"),
        ("flask", ("flask",), "webapp.tasks"),
        ("django", ("django",), "mysite.worker"),
    ],
    ids=lambda value: value if value in SIGN_UP else "",
)
def test_a_web_application_pushes_to_a_server_and_a_worker_runs_its_job(
    tmp_path: Path, example: str, packages: tuple[str, ...], target: str
) -> None:
    need(*packages)
    database = {name: str(tmp_path / "app.db") for name in ("WEBAPP_DATABASE", "MYSITE_DATABASE")}
    with Server(tmp_path / "data") as server:
        variables = environment(CROSSDOCK_URL=server.url, **database)
        jid = subprocess.run(
            [sys.executable, "-c", SIGN_UP[example]],
            cwd=EXAMPLES / example, env=variables, check=True, capture_output=True, text=True, timeout=PATIENCE_S,
        ).stdout.strip()  # fmt: skip
        worker = WorkerProcess(
            tmp_path / "worker", server.url, target=target, app_dir=EXAMPLES / example, environment=variables
        )
        with worker, Client(server.url) as client:
            assert client.result(jid, PATIENCE_S) == b'"welcome, Ada"'
            assert worker.stop() == 0
