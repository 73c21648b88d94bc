"""Rate limits in a running server: they hold over restarts and compactions, and waiting requests are woken."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from tests.support.command_line import Operator
from tests.support.faktory_client import Client
from tests.support.patience import wait_until
from tests.support.server import Server

CONFIG = '[rate.welcome]\nkind = "welcome"\nrate = "2/d"\n[rate.quick]\nqueue = "quick"\nrate = "2/s"\n'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    file = tmp_path / "crossdock.toml"
    file.write_text(CONFIG, "utf-8")
    with Server(tmp_path / "data", config=file) as running:
        yield running


def taken(client: Client, *queues: str) -> list[str]:
    found = []
    while (job := client.fetch(*queues)) is not None:
        found.append(job["jid"])
    return found


def test_a_restart_and_a_compaction_keep_what_was_used(server: Server, tmp_path: Path) -> None:
    operator = Operator(tmp_path, server_data="data")
    with server.client() as client:
        for at in range(5):
            client.push(f"welcome-{at}", "mail", jobtype="welcome")
        client.push("another-1", "mail", jobtype="other")
        assert taken(client, "mail") == ["welcome-0", "welcome-1", "another-1"]
    (row,) = (row for row in operator.json("rate", "list")["rate_limits"] if row["rate"] == "welcome")
    assert (row["left"], row["waiting"], row["allows"]) == (0, 3, "2 jobs per day")
    assert "rate limit welcome allows 2 jobs per day; the next one at " in operator.output("job", "show", "welcome-2")
    assert "2 jobs per day" in operator.output("rate", "list")
    server.restart()
    with server.client() as client:
        assert taken(client, "mail") == []
    with AdminClient(server.data) as admin:
        admin.ask("compact")
    server.kill()
    server.start()
    with server.client() as client:
        assert taken(client, "mail") == []
        client.push("another-2", "mail", jobtype="other")
        assert taken(client, "mail") == ["another-2"]
    (row,) = (row for row in operator.json("rate", "list")["rate_limits"] if row["rate"] == "welcome")
    assert (row["left"], row["waiting"]) == (0, 3)
    assert server.stop() == 0
    assert operator.run("check", "--data", str(server.data)).code == 0


def test_a_worker_that_waits_gets_each_job_when_its_token_is_there(server: Server) -> None:
    with server.client() as client, server.client() as worker:
        for at in range(6):
            client.push(f"quick-00{at}", "quick")
        found: list[str] = []

        def fetch() -> bool:
            job = worker.fetch("quick")  # waits up to two seconds, and a token comes every half second
            assert job is not None, "a timer wakes it"
            found.append(job["jid"])
            return len(found) == 6

        wait_until(fetch, lambda: str(found))
        assert found == [f"quick-00{at}" for at in range(6)]
