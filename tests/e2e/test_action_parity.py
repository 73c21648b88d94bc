"""Every action of the dashboard as the command and as the curl call that its page shows.

The texts are taken from the pages and run in a shell, the command on one job, queue, worker or schedule, and the call
on an equal one. Their effects must be equal.
"""

import html
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.errors import Refused
from crossdock.web.pages.commands import JOB_ACTIONS
from tests.support.patience import wait_until
from tests.support.server import Server

pytestmark = [pytest.mark.clients, pytest.mark.slow]

RUN_S: Final = 30

_SHOWN: Final = re.compile(
    r'<h3>([^<]*)</h3>\s*<div class="stack"><pre class="code one">(.*?)</pre><pre class="code one">(.*?)</pre>',
    re.DOTALL,
)

#: The state from which each action on jobs is tried, and the job's state and queue after it. None: it is gone.
EFFECTS: Final[dict[str, tuple[str, tuple[str, str] | None]]] = {
    "retry": ("dead", ("ready", "here")),
    "move": ("ready", ("ready", "QUEUE")),
    "release": ("leased", ("retrying", "here")),
    "kill": ("ready", ("dead", "here")),
    "cancel": ("leased", None),
    "delete": ("ready", None),
}


class Ways:
    """The texts that a page shows for an action."""

    def __init__(self, command: str, curl: str) -> None:
        self.command = command
        self.curl = curl


class Operator:
    """A shell on the server's machine, and a reader of pages."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self._folder = folder
        program = folder / "crossdock"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m crossdock "$@"\n', "utf-8")
        program.chmod(0o755)
        self._environment = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "CROSSDOCK_SERVER_DATA": str(server.data),
        }

    def ways(self, path: str, title: str) -> Ways:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.ports['http']}{path}", timeout=RUN_S) as reply:
            shown = _SHOWN.findall(reply.read().decode())
        found = {name: Ways(html.unescape(command), html.unescape(curl)) for name, command, curl in shown}
        assert title in found, f"{path} does not show {title}"
        return found[title]

    def run(self, text: str) -> str:
        done = subprocess.run(
            text,
            shell=True,  # as an operator pastes it
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_command(self, text: str, *, asks: bool = False) -> None:
        """A command that would ask in a terminal is answered beforehand."""
        assert text.startswith("crossdock ")
        self.run(f"{text} --yes" if asks else text)

    def run_curl(self, text: str) -> None:
        assert text.startswith("curl -X POST ")
        for line in self.run(f"{text} --silent --show-error --max-time 20").splitlines():
            reply = json.loads(line)
            assert not reply.get("error"), f"{text}\n{line}"
            assert not reply.get("refused"), f"{text}\n{line}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("curl") is None:
        pytest.skip("THE CURL CALLS OF THE DASHBOARD WERE NOT TESTED: curl is missing")
    with Server(tmp_path_factory.mktemp("parity") / "data", protocols=("faktory", "http")) as running:
        yield running


@pytest.fixture(scope="module")
def operator(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(server, tmp_path_factory.mktemp("shell"))


@pytest.fixture
def admin(server: Server) -> Iterator[AdminClient]:
    with AdminClient(server.data) as client:
        yield client


def put(server: Server, admin: AdminClient, jid: str, queue: str, state: str) -> None:
    """A job in this state. A leased one belongs to a worker that is gone."""
    with server.client(wid=f"gone-{jid}") as client:
        client.push(jid, queue=queue, jobtype="Work", args=[], retry=-1 if state == "dead" else 5)
        if state != "ready":
            assert client.fetch(queue) is not None
        if state == "dead":
            client.fail(jid)
    if state == "leased":
        wait_until(
            lambda: all(worker["worker"] != f"gone-{jid}" for worker in admin.rows("workers")),
            "the server to notice that the worker is gone",
        )


def effect(admin: AdminClient, jid: str) -> tuple[str, str] | None:
    """The job's state and queue. None: it is gone."""
    try:
        job = admin.job(jid)["job"]
    except Refused:
        return None
    return job["state"], job["queue"]


def expected(action: str, queue: str) -> tuple[str, str] | None:
    after = EFFECTS[action][1]
    return after and (after[0], after[1].replace("here", queue))


def test_every_action_on_jobs_is_tried() -> None:
    assert set(EFFECTS) == set(JOB_ACTIONS)


@pytest.mark.parametrize("action", EFFECTS)
def test_an_action_on_one_job(server: Server, operator: Operator, admin: AdminClient, action: str) -> None:
    queue, title = f"one-{action}", JOB_ACTIONS[action][0]
    jids = [f"one-{action}-{way}" for way in ("command", "curl")]
    for jid in jids:
        put(server, admin, jid, queue, EFFECTS[action][0])
    before = [effect(admin, jid) for jid in jids]
    assert before == [(EFFECTS[action][0], queue)] * 2
    with_command, with_curl = (operator.ways(f"/jobs/{admin.job(jid)['job']['number']}", title) for jid in jids)
    operator.run_command(with_command.command)
    operator.run_curl(with_curl.curl)
    assert [effect(admin, jid) for jid in jids] == [expected(action, queue)] * 2


@pytest.mark.parametrize("action", EFFECTS)
def test_an_action_on_all_jobs_of_a_filter(server: Server, operator: Operator, admin: AdminClient, action: str) -> None:
    title, found = JOB_ACTIONS[action][0], {}
    for way in ("command", "curl"):
        queue = f"all-{action}-{way}"
        for number in range(3):
            put(server, admin, f"{queue}-{number}", queue, EFFECTS[action][0])
        ways = operator.ways(f"/confirm?do={action}&filter={quote(f'queue:{queue}')}", title)
        if way == "command":
            operator.run_command(ways.command, asks=True)
        else:
            operator.run_curl(ways.curl)
        found[way] = [effect(admin, f"{queue}-{number}") for number in range(3)]
        assert found[way] == [expected(action, queue)] * 3


def test_queues_are_paused_and_resumed(server: Server, operator: Operator, admin: AdminClient) -> None:
    names = ("queue-command", "queue-curl")
    for name in names:
        put(server, admin, f"job-of-{name}", name, "ready")

    def seen() -> list[Any]:
        rows = [admin.ask("queue", name=name)["queue"] for name in names]
        return [(row["paused"], row["pause"] and row["pause"]["reason"]) for row in rows]

    for action, after in (("Pause", (True, "REASON")), ("Resume", (False, None))):
        with_command, with_curl = (operator.ways(f"/queues/{name}", action) for name in names)
        operator.run_command(with_command.command)
        operator.run_curl(with_curl.curl)
        assert seen() == [after, after]


@pytest.mark.parametrize(("action", "state"), [("quiet", "quiet"), ("terminate", "terminate")])
def test_workers_are_signalled(server: Server, operator: Operator, admin: AdminClient, action: str, state: str) -> None:
    """The page shows the calls for its first worker."""
    for way in ("command", "curl"):
        name = f"worker-{action}-{way}"
        with server.client(wid=name):
            ways = operator.ways("/workers", action.capitalize())
            assert name in ways.command and name in ways.curl
            if way == "command":
                operator.run_command(ways.command)
            else:
                operator.run_curl(ways.curl)
            rows = {row["worker"]: row["state"] for row in admin.ask("workers")["workers"]}
            assert rows[name] == state


def test_schedules_are_run(operator: Operator, admin: AdminClient) -> None:
    """The page shows the calls for its first schedule."""
    for way in ("command", "curl"):
        name = f"schedule {way}"
        admin.ask("schedule-add", name=name, every=3600, kind="Work", queue=f"runs-{way}", start=4e9)
        ways = operator.ways("/schedules", "Run now")
        if way == "command":
            operator.run_command(ways.command)
        else:
            operator.run_curl(ways.curl)
        assert admin.ask("count", queue=f"runs-{way}")["count"] == 1
        admin.ask("schedule-remove", names=[name])
