"""Clients that send too much, too fast or all at once are limited; other clients are served.

See testing.md sections 17 and 18.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from tests.support.faktory_client import Client, Gone, Refused, job
from tests.support.patience import PATIENCE_S
from tests.support.server import Server
from tests.support.stalls import Stalls

pytestmark = [pytest.mark.fault, pytest.mark.alone]

MIB = 1024 * 1024


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def push_line(jid: str, size: int) -> bytes:
    return b'PUSH {"jid":"%b","jobtype":"t","args":["%b"]}\r\n' % (jid.encode(), b"x" * size)


class Bystander(threading.Thread):
    """Another client that keeps pushing. Measures its longest wait, without the stalls of the machine."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._client = server.client()
        self._ending = threading.Event()
        self.waits: list[float] = []
        self._stalls = Stalls()

    def run(self) -> None:
        with self._stalls, self._client as client:
            while not self._ending.is_set():
                began = time.monotonic()
                client.push(f"bystander-{len(self.waits)}", "bystander")
                self.waits.append(time.monotonic() - began)

    def finish(self) -> float:
        self._ending.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the other client was not served"
        assert len(self.waits) > 5
        return max(self.waits) - self._stalls.lost


def test_the_server_stops_reading_from_a_client_that_never_reads(server: Server) -> None:
    before = server.rss_mib()
    bystander = Bystander(server)
    with server.client() as hog, server.client() as pusher:
        bystander.start()
        for client, flood in ((hog, b"INFO\r\n" * 100_000), (pusher, push_line("flood-01", 100) * 100_000)):
            client.socket.settimeout(2.0)
            with pytest.raises(TimeoutError):  # the server stops reading long before the end
                client.socket.sendall(flood * 10)
        grown = server.rss_mib() - before
        assert bystander.finish() < 2.0
    assert grown < 150, "requests that are not processed must not use memory"
    with server.client() as client:
        assert client.sizes()["enqueued"] > len(bystander.waits), "the server must work afterwards"


def test_large_replies_that_are_not_read_use_little_memory(tmp_path: Path) -> None:
    """A hundred jobs of one MiB each, requested by ten clients that do not read and then by one that does."""
    jobs, block = 100, b"x" * MIB
    with Server(tmp_path / "data", protocols=("faktory", "workq")) as server, ExitStack() as stack:
        protocol = ("127.0.0.1", server.ports["workq"])
        asks = [stack.enter_context(socket.create_connection(protocol, PATIENCE_S)) for _ in range(10)]
        for number in range(jobs):
            asks[0].sendall(b"add 61a444a0-6128-41c0-8078-%012x q 60000 600000 %d\r\n%b\r\n" % (number, MIB, block))
            assert asks[0].recv(5) == b"+OK\r\n"
        before = server.rss_mib()
        bystander = Bystander(server)
        bystander.start()
        for ask in asks:
            ask.sendall(b"inspect jobs q 0 100\r\ninspect server\r\n")
            assert ask.recv(9, socket.MSG_WAITALL) == b"+OK 100\r\n"
        grown = server.rss_mib() - before
        with closing(asks[0].makefile("rb")) as reply:
            for number in range(jobs):
                assert reply.readline() == b"61a444a0-6128-41c0-8078-%012x 12\r\n" % number
                assert [reply.readline() for _ in range(4)][3] == b"payload-size %d\r\n" % MIB
                assert reply.read(8 + MIB) == b"payload " + block
                assert [reply.readline() for _ in range(8)][7].startswith(b"created ")
            assert reply.readline() == b"+OK 1\r\n", "the next request must be answered"
        assert bystander.finish() < 2.0
    assert grown < 100, "replies that are not read must not be built"


def test_a_line_over_the_limit_is_refused_with_a_reason(server: Server) -> None:
    before = server.rss_mib()
    for size in (16 * MIB + 1, 17 * MIB, 40 * MIB):
        with server.client() as client:
            with suppress(Gone):
                client.send(push_line("too-long-1", size))
            assert client.read_end() == b"-ERR line too long\r\n"
    with server.client() as client:
        client.send(push_line("just-right", 15 * MIB))
        assert client.read() == b"+OK"
        assert client.sizes()["enqueued"] == 1
        found = client.fetch()
        assert found is not None
        assert found["args"] == ["x" * 15 * MIB]
    assert server.rss_mib() - before < 300


def test_a_hundred_thousand_pipelined_commands_are_answered_in_order(server: Server) -> None:
    count = 100_000
    with server.client() as client:
        lines = b"".join(
            b'PUSH {"jid":"job-%06d","jobtype":"t","args":[]}\r\nFETCH default\r\n' % n for n in range(count // 2)
        )
        sender = threading.Thread(target=client.send, args=(lines,), daemon=True)
        bystander = Bystander(server)
        bystander.start()
        sender.start()
        for n in range(count // 2):
            assert client.read() == b"+OK"
            found = client.fetched()
            assert found is not None
            assert found["jid"] == f"job-{n:06d}"
        sender.join(PATIENCE_S)
        assert bystander.finish() < 2.0


@pytest.mark.parametrize("first", [b"FETCH empty\r\n", b"PUSHB [%b]\r\n"], ids=["behind a wait", "behind slices"])
def test_a_long_line_after_a_long_command_is_read_to_its_end(server: Server, first: bytes) -> None:
    """The line exceeds the read-ahead limit without being complete: reading must continue after the first command."""
    if b"PUSHB" in first:
        one = b'{"jid":"bulk-%05d","jobtype":"t","args":[]}'
        first %= b",".join(one % n for n in range(5_000))
    with server.client() as client:
        client.send(first + push_line("job-0001", 500_000))
        assert client.read_any() in (None, b"{}")
        assert client.read() == b"+OK"


def test_two_thousand_idle_connections_use_little_memory(server: Server) -> None:
    before = server.rss_mib()
    clients: list[Client] = []
    try:
        clients.extend(server.client() for _ in range(2_000))
        assert clients[0].info()["server"]["connections"] == 2_000
        for client in clients[::100]:
            client.push(f"job-{clients.index(client):08d}")
        assert server.rss_mib() - before < 60
    finally:
        for client in clients:
            client.close()


def test_a_connection_beyond_the_limit_receives_an_error(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"limits.connections": 3}) as server:
        clients = [server.client() for _ in range(3)]
        with server.client() as fourth:
            with pytest.raises(Refused, match="too many connections: 4"):
                fourth.read()
            assert fourth.read_end() == b""
        clients[0].push("job-0001")
        for client in clients:
            client.close()


def test_at_the_job_limit_pushes_are_refused_and_other_requests_work(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"limits.jobs": 10}) as server, server.client() as client:
        assert client.push_many([job(f"job-{n:05d}") for n in range(8)]) == {}
        client.push("job-00008")
        refused = client.push_many([job("bulk-0001"), job("bulk-0002")])
        assert set(refused) == {"bulk-0001", "bulk-0002"}
        client.push("job-00009")
        with pytest.raises(Refused, match=r"the server holds 10 jobs, its limit; .*, or raise limits\.jobs"):
            client.push("job-00010")
        found = client.fetch()
        assert found is not None
        with pytest.raises(Refused, match=r"limits\.jobs"):
            client.push("job-00010")
        client.ack(found["jid"])
        client.push("job-00010")
        assert client.sizes()["enqueued"] == 10
