"""The control socket of a real server: whose it is, how it is found, and who is let in."""

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
from crossdock.client.base import Broken, NoServer, Refused
from crossdock.protocols.admin.session import LINE_BYTES
from crossdock.protocols.admin.socket_path import PATH_BYTES
from crossdock.server.endpoints import BUILT
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


def test_no_server(tmp_path: Path) -> None:
    ended = Operator(tmp_path).run("job", "list", "--data", "nowhere")
    assert ended == Ended(
        "",
        "crossdock: no server runs on nowhere; start it with crossdock up --data nowhere, "
        "or name the folder of the one that runs with --data or --config\n",
        1,
    )


def test_the_socket_is_for_its_owner_and_goes_with_the_server(server: Server, operator: Operator) -> None:
    socket = server.data / "control.sock"
    assert stat.S_ISSOCK(socket.stat().st_mode)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    server.kill()  # leaves it behind
    assert socket.exists()
    assert operator.run("queue", "list").err.startswith("crossdock: no server runs on data;")
    server.start()
    assert operator.json("queue", "list") == {"queues": []}
    assert server.stop() == 0
    assert not socket.exists()


def test_another_kind_of_file_in_its_place_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "control.sock").write_text("mine")
    ended = Operator(tmp_path).run("up", "--data", "data", *(f"--listen={protocol}=off" for protocol in BUILT))
    assert ended.code == 1
    assert "\ncrossdock: data/control.sock cannot be opened: Address already in use; remove what is" in ended.err
    assert (tmp_path / "data" / "control.sock").read_text() == "mine"


def test_a_folder_with_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    data = tmp_path / ("deep" * 30) / "data"
    assert len(os.fsencode(data)) > PATH_BYTES
    with Server(data) as server:
        assert stat.S_IMODE((data / "control.sock").stat().st_mode) == 0o600
        assert Operator(tmp_path).json("queue", "list", "--data", str(data)) == {"queues": []}
        server.restart()
        with AdminClient(data) as client:
            assert client.ask("status")["status"]["pid"] == server.process.pid
        assert server.stop() == 0
    assert not (data / "control.sock").exists()
    with pytest.raises(NoServer):
        AdminClient(data)


def test_a_server_that_is_starting(tmp_path: Path, operator: Operator) -> None:
    """It holds the folder's lock and has not opened its socket yet."""
    (tmp_path / "data").mkdir()
    with (tmp_path / "data" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert operator.run("queue", "list") == Ended(
            "",
            f"crossdock: process {os.getpid()} has data open and does not answer yet; it may still be starting: "
            "try again\n",
            1,
        )


def test_the_operator_is_let_in_when_every_connection_is_taken(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"limits.connections": 1}) as server, server.client():
        with server.client() as other, pytest.raises(Crowded, match="too many connections"):
            other.info()
        with AdminClient(server.data) as first, AdminClient(server.data) as second:
            assert second.ask("count")["count"] == 0  # answered, so it is in
            assert first.ask("status")["status"]["connections"] >= 3


def test_requests_sent_ahead_are_answered_in_order(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(server.data / "control.sock"))
        lines = [b'{"do":"job","id":%d}\n' % n if n % 3 else b'{"do":"jobs","kind":"none"}\n' for n in range(300)]
        peer.sendall(b"".join(lines))
        with peer.makefile("rb") as answers:
            for n in range(300):
                answer = json.loads(answers.readline())
                assert answer["error"].startswith(f"job {n} not found") if n % 3 else answer["jobs"] == []


def test_a_line_without_end_is_cut_off(server: Server) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(server.data / "control.sock"))
        peer.sendall(b"x" * (LINE_BYTES + 2))
        with peer.makefile("rb") as answers:
            assert json.loads(answers.readline())["error"].startswith("a line must not be longer than 1 MiB")
            assert answers.read() == b""


def test_the_end_of_the_server_is_reported(server: Server) -> None:
    with AdminClient(server.data) as client:
        client.ask("status")
        assert server.stop() == 0
        with pytest.raises((Refused, Broken), match="the server"):
            client.ask("status")


def test_the_examples_of_the_reference_are_true(server: Server) -> None:
    lines = ADMIN.read_text("utf-8").splitlines()
    asked = 0
    with socket.socket(socket.AF_UNIX) as peer, peer.makefile("rwb") as wire:
        peer.connect(str(server.data / "control.sock"))
        for line, answer in pairwise(lines):
            begin, end = line.find('{"do":'), line.rfind("}")
            if begin >= 0 and answer.startswith("{"):
                wire.write(line[begin : end + 1].encode() + b"\n")
                wire.flush()
                assert list(json.loads(wire.readline())) == list(json.loads(answer.replace("…", "0")))
                asked += 1
    assert asked == 3
