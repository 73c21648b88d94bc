"""Jobs that were pushed through each protocol are executed by tasks, and nothing else of them is."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crossdock import App, current_job
from crossdock.client.bulk import Where
from crossdock.client.masenko import MasenkoClient
from crossdock.client.qless import QlessClient
from crossdock.client.resqu import ResquClient
from crossdock.client.workq import WorkqClient
from tests.support.app_worker import work_off, work_one
from tests.support.server import Server

_SETTINGS = """\
[mapping.static.default]
default = "php"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("foreign")
    config = folder / "crossdock.toml"
    config.write_text(_SETTINGS)
    with Server(folder / "data", protocols=("faktory", "workq", "masenko", "redis"), config=config) as running:
        yield running


@pytest.fixture
def done() -> list[Any]:
    return []


@pytest.fixture
def app(server: Server, done: list[Any]) -> Iterator[App]:
    app = App(server.url)

    @app.task(kinds=("\\Example\\JobWrapper", "MailJob", "mail"))
    def send_mail(to: str, *, copies: int = 1) -> str:
        done.append((to, copies, dict(current_job().environment), current_job().origin))
        return f"sent to {to}"

    yield app
    app.close()


def _push_resqu(server: Server, **members: Any) -> None:
    job = {"class": "\\Example\\JobWrapper", "sourceId": "shop", "name": "\\Example\\Jobs\\MailJob", "id": "resqu-0001"}
    with ResquClient(Where("127.0.0.1", server.ports["redis"])) as client:
        client.push(job | {"args": {"to": "ada", "copies": 2}} | members)


def test_a_resqu_job_has_its_class_arguments_and_environment(server: Server, app: App, done: list[Any]) -> None:
    _push_resqu(server, environment={"PROJECT_ACCOUNTS_PATH": "/opt/app/accounts"})
    work_one(app, ["php"])
    assert done == [("ada", 2, {"PROJECT_ACCOUNTS_PATH": "/opt/app/accounts"}, "resqu")]


def test_an_include_path_opens_nothing(server: Server, app: App, done: list[Any], tmp_path: Path) -> None:
    evil = tmp_path / "evil.py"
    evil.write_text("raise SystemExit('imported')")
    _push_resqu(server, includePath=str(evil), id="resqu-0002")
    job = work_one(app, ["php"])
    assert done == []
    assert job.resqu["includePath"] == str(evil)
    assert app.client.cancel(job.jid)


def test_an_include_path_selects_a_registered_bundle(server: Server, app: App, done: list[Any]) -> None:
    bundle = app.bundle("scripts/job_bootstrap.php", setup=lambda: done.append("set up"))

    @bundle.task(kinds=["\\Example\\JobWrapper"])
    def wrapped(to: str, copies: int) -> None:
        done.append(to)

    _push_resqu(server, includePath="scripts/job_bootstrap.php", id="resqu-0003")
    work_one(app, ["php"])
    assert done == ["set up", "ada"]


def test_a_qless_job_has_named_arguments(server: Server, app: App, done: list[Any]) -> None:
    with QlessClient("127.0.0.1", server.ports["redis"]) as client:
        client.put("ruby", "qless-0001", "MailJob", b'{"to": "grace"}')
    work_one(app, ["ruby"])
    assert done == [("grace", 1, {}, "qless")]


def test_a_masenko_task_has_named_arguments(server: Server, app: App, done: list[Any]) -> None:
    with MasenkoClient("127.0.0.1", server.ports["masenko"]) as client:
        client.push({"name": "mail", "queue": "rust", "payload": {"to": "alan", "copies": 3}})
    work_one(app, ["rust"])
    assert done == [("alan", 3, {}, "masenko")]


def test_a_workq_client_gets_the_result(server: Server, app: App) -> None:
    @app.task
    def reverse(data: bytes) -> dict[str, str]:
        return {"reversed": data[::-1].hex()}

    replies: list[bytes] = []

    def run() -> None:
        with WorkqClient("127.0.0.1", server.ports["workq"]) as client:
            stream = client._stream
            stream.send(b"run 6ba7b810-9dad-11d1-80b4-00c04fd430c4 reverse 60000 60000 3\r\n\xff\x00\x01\r\n")
            replies.extend(stream.line() for _ in range(3))

    runner = threading.Thread(target=run)
    runner.start()
    work_one(app, ["reverse"])
    runner.join()
    assert replies[0] == b"+OK 1"
    assert replies[1].split(b" ")[1:2] == [b"1"]
    assert msgspec.json.decode(replies[2]) == {"reversed": "0100ff"}


def test_a_ruby_client_of_faktory_sends_positional_arguments(server: Server, app: App, done: list[Any]) -> None:
    with server.client() as client:
        client.call("PUSH", {"jid": "ruby-00001", "jobtype": "MailJob", "args": ["linus"], "queue": "gems"})
    work_off(app, ["gems"])
    assert done == [("linus", 1, {}, "faktory")]
