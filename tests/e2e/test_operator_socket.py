"""The admin socket of a real server: its owner, how it is found, and access to it."""

import fcntl
import json
import os
import socket
import stat
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.errors import Broken, NoServer, Refused
from crossdock.protocols.admin.session import LINE_BYTES
from crossdock.protocols.admin.socket_path import PATH_BYTES
from crossdock.server.endpoints import LISTENERS
from tests.support.command_line import Ended, Operator
from tests.support.faktory_client import Refused as Crowded
from tests.support.server import Server

ADMIN = Path(__file__).parents[2] / "docs" / "reference" / "admin.md"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as running:
        yield running


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path, server_data="data")


def test_a_missing_server_is_reported(tmp_path: Path) -> None:
    ended = Operator(tmp_path).run("job", "list", "--data", "nowhere")
    assert ended == Ended(
        "",
        "crossdock: no server runs on nowhere; start one with crossdock up --data nowhere, "
        "or name the data folder of the running server with --data or --config\n",
        1,
    )


def test_the_socket_is_private_and_removed_at_the_stop(server: Server, operator: Operator) -> None:
    socket = server.data / "admin.sock"
    assert stat.S_ISSOCK(socket.stat().st_mode)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    server.kill()  # a killed server leaves its socket
    assert socket.exists()
    assert operator.run("queue", "list").err.startswith("crossdock: no server runs on data;")
    server.start()
    assert operator.json("queue", "list") == {"queues": []}
    assert server.stop() == 0
    assert not socket.exists()


def test_another_file_at_the_sockets_path_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "admin.sock").write_text("mine")
    ended = Operator(tmp_path).run("up", "--data", "data", *(f"--listen={protocol}=off" for protocol in LISTENERS))
    assert ended.code == 1
    assert "\ncrossdock: data/admin.sock cannot be opened: Address already in use; remove the file that is" in ended.err
    assert (tmp_path / "data" / "admin.sock").read_text() == "mine"


def test_a_path_that_is_too_long_for_a_socket_still_works(tmp_path: Path) -> None:
    data = tmp_path / ("deep" * 30) / "data"
    assert len(os.fsencode(data)) > PATH_BYTES
    with Server(data) as server:
        assert stat.S_IMODE((data / "admin.sock").stat().st_mode) == 0o600
        assert Operator(tmp_path).json("queue", "list", "--data", str(data)) == {"queues": []}
        server.restart()
        with AdminClient(data) as client:
            assert client.ask("status")["status"]["pid"] == server.process.pid
        assert server.stop() == 0
    assert not (data / "admin.sock").exists()
    with pytest.raises(NoServer):
        AdminClient(data)


def test_a_starting_server_is_reported(tmp_path: Path, operator: Operator) -> None:
    """It holds the folder's lock but has not opened its socket yet."""
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert operator.run("queue", "list") == Ended(
            "",
            f"crossdock: process {os.getpid()} has data open and does not answer yet; it may still be starting, so "
            "try again\n",
            1,
        )


def test_the_operator_can_connect_when_the_connection_limit_is_reached(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"limits.connections": 1}) as server, server.client():
        with server.client() as other, pytest.raises(Crowded, match="too many connections"):
            other.info()
        with AdminClient(server.data) as first, AdminClient(server.data) as second:
            assert second.ask("count")["count"] == 0  # a reply shows that it is connected
            assert first.ask("status")["status"]["connections"] >= 3


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(server.data / "admin.sock"))
        lines = [b'{"do":"job","id":%d}\n' % n if n % 3 else b'{"do":"jobs","kind":"none"}\n' for n in range(300)]
        peer.sendall(b"".join(lines))
        with peer.makefile("rb") as answers:
            for n in range(300):
                answer = json.loads(answers.readline())
                assert answer["error"].startswith(f"job {n} not found") if n % 3 else answer["jobs"] == []


def test_a_line_without_end_closes_the_connection(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(server.data / "admin.sock"))
        peer.sendall(b"x" * (LINE_BYTES + 2))
        with peer.makefile("rb") as answers:
            assert json.loads(answers.readline())["error"].startswith("a line must not be longer than 1 MiB")
            assert answers.read() == b""


def test_a_server_stop_is_reported(server: Server) -> None:
    with AdminClient(server.data) as client:
        client.ask("status")
        assert server.stop() == 0
        with pytest.raises((Refused, Broken), match="the server"):
            client.ask("status")


def test_the_examples_of_the_reference_work(server: Server) -> None:
    lines = ADMIN.read_text("utf-8").splitlines()
    asked = 0
    with socket.socket(socket.AF_UNIX) as peer, peer.makefile("rwb") as wire:
        peer.connect(str(server.data / "admin.sock"))
        for line, answer in pairwise(lines):
            begin, end = line.find('{"do":'), line.rfind("}")
            if begin >= 0 and answer.startswith("{"):
                wire.write(line[begin : end + 1].encode() + b"\n")
                wire.flush()
                assert list(json.loads(wire.readline())) == list(json.loads(answer.replace("…", "0")))
                asked += 1
    assert asked == 3
