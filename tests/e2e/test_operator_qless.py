"""The operator's verbs for what qless brought, on jobs of all doors: the real command line against a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.client.stream import connect
from tests.support.command_line import Operator
from tests.support.faktory_client import Client
from tests.support.qless_peer import ViaQless
from tests.support.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", doors=("faktory", "redis")) as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data", listen_faktory=f"127.0.0.1:{server.port}")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client(wid="worker-1") as connected:
        yield connected


@pytest.fixture
def qless(server: Server) -> Iterator[ViaQless]:
    peer = ViaQless(connect("Redis", "127.0.0.1", server.ports["redis"], "", 20.0), "worker-2")
    yield peer
    peer.close()


def test_jobs_by_tag(operator: Operator, client: Client, qless: ViaQless, server: Server) -> None:
    client.push("faktory-1")
    qless.call("put", "w", "mail", "qless-1", "K", "{}", 0, "tags", '["urgent", "vip"]')
    qless.call("tag", "add", "faktory-1", "urgent")
    assert [row["jid"] for row in operator.json("jobs", "--tag", "urgent")["jobs"]] == ["qless-1", "faktory-1"]
    page = operator.json("jobs", "--tag", "urgent", "--limit", "1")
    rest = operator.json("jobs", "--tag", "urgent", "--after", page["after"])
    assert [row["jid"] for row in rest["jobs"]] == ["faktory-1"]
    assert operator.tell("jobs", "--tag", "vip", "--count") == "1 job\n"
    assert "\n  tags      urgent, vip\n" in operator.tell("job", "qless-1")
    assert operator.json("retry", "--tag", "urgent", "--yes") == {"matched": 0, "done": 0}
    server.restart()
    assert operator.json("delete", "--tag", "urgent", "--queue", "mail", "--yes") == {"matched": 1, "done": 1}
    assert [row["jid"] for row in operator.json("jobs", "--tag", "urgent")["jobs"]] == ["faktory-1"]
