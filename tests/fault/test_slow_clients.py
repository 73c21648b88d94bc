"""Clients that are slow, stop in the middle of a request or disappear (testing.md section 16)."""

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.support.server import Server
from tests.support.stalls import Stalls

pytestmark = [pytest.mark.fault, pytest.mark.alone]

HANDSHAKE_S = 2.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", {"faktory.handshake_s": HANDSHAKE_S}) as server:
        yield server


def read_until_closed(sock: socket.socket) -> None:
    """Read until the server has closed the connection."""
    while True:
        try:
            if not sock.recv(4_096):
                break
        except ConnectionResetError:
            break


@pytest.mark.parametrize("said", [b"", b"HELLO {", b'HELLO {"v":2}'], ids=["silent", "half a line", "no line end"])
def test_a_client_without_hello_in_time_is_closed(server: Server, said: bytes) -> None:
    began = time.monotonic()
    with Stalls() as stalls, socket.create_connection(server.address, PATIENCE_S) as sock:
        sock.sendall(said)
        read_until_closed(sock)
        assert time.monotonic() - began > HANDSHAKE_S - 0.1
    assert stalls.elapsed < HANDSHAKE_S + 1.0


def test_single_bytes_do_not_extend_the_handshake_deadline(server: Server) -> None:
    with Stalls() as stalls, socket.create_connection(server.address, PATIENCE_S) as sock:
        sock.settimeout(0.2)
        sock.recv(100)
        for byte in b'HELLO {"v":2,"hostname":"' + b"x" * 100:
            try:
                sock.sendall(bytes([byte]))
                if not sock.recv(100):
                    break
            except TimeoutError:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
    assert stalls.elapsed < HANDSHAKE_S + 1.0


def test_an_idle_client_after_hello_is_not_closed(server: Server) -> None:
    with server.client() as quiet:
        with socket.create_connection(server.address, PATIENCE_S) as sock:
            read_until_closed(sock)  # a whole handshake deadline passes
        quiet.push("job-0001")


def test_too_much_input_before_hello_closes_the_connection(server: Server) -> None:
    with Stalls() as stalls, socket.create_connection(server.address, PATIENCE_S) as sock:
        sock.sendall(b"HELLO {" + b"x" * 20_000)
        read_until_closed(sock)
    assert stalls.elapsed < HANDSHAKE_S - 0.3, "closed immediately, not at the deadline"


def test_hundreds_of_slow_handshakes_do_not_delay_another_client(server: Server) -> None:
    slow = [socket.create_connection(server.address, PATIENCE_S) for _ in range(500)]
    try:
        for sock in slow:
            sock.sendall(b"HELL")
        with Stalls() as stalls, server.client() as client:
            waits = []
            for n in range(100):
                began = time.monotonic()
                client.push(f"job-{n:05d}")
                waits.append(time.monotonic() - began)
        assert max(waits) < 1.0 + stalls.lost
        for sock in slow:
            read_until_closed(sock)
        with server.client() as client:
            assert client.info()["server"]["connections"] == 1
    finally:
        for sock in slow:
            sock.close()


def test_a_job_fetched_for_a_client_that_disappeared_is_released(server: Server) -> None:
    """The client died while it waited. The next client receives the job, and no attempt is counted."""
    gone = server.client(wid="worker-1")
    gone.ask("FETCH default")
    with server.client() as client:
        assert client.info()["server"]["connections"] == 2
        gone.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()  # a reset, as from a machine that failed
        client.push("job-0001")
        found = client.fetch()
        assert found is not None
        assert found["jid"] == "job-0001"
        client.ack("job-0001")
        assert client.sizes()["working"] == 0
