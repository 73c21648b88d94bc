"""Clients that request much and never read: the server's memory stays within `limits.reply_memory_mib`."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.support.patience import PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.fault

CLIENTS: Final = 60
BUDGET_MIB: Final = 16
VALUE_MIB: Final = 6

#: Additional memory of the allocator and of the reply being built.
_BESIDE_MIB: Final = 100


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    settings = {"limits.reply_memory_mib": BUDGET_MIB, "lake.on": "false"}
    with Server(tmp_path / "data", settings, protocols=("faktory", "redis")) as server:
        yield server


def connected(server: Server, stack: ExitStack, buffer: int = 0) -> socket.socket:
    """Connect to the Redis listener. With a very small buffer the socket itself takes no data."""
    sock = stack.enter_context(socket.socket())
    if buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.settimeout(PATIENCE_S)
    sock.connect(("127.0.0.1", server.ports["redis"]))
    return sock


def reads_all(server: Server, ask: bytes) -> bool:
    with ExitStack() as stack:
        sock = connected(server, stack)
        sock.sendall(ask)
        received = 0
        while received < VALUE_MIB << 20:
            try:
                some = len(sock.recv(1 << 20))
            except ConnectionResetError:
                some = 0
            if not some:
                return False
            received += some
        return True


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


@pytest.mark.parametrize("kind", ["one value", "a list"])
def test_sixty_clients_that_never_read_stay_within_the_memory_limit(server: Server, kind: str) -> None:
    """Without the limit each would have its whole reply in a buffer."""
    with ExitStack() as stack, server.client() as other:
        first = connected(server, stack)
        if kind == "one value":
            first.sendall(command(b"SET", b"big", b"x" * (VALUE_MIB << 20)))
            ask = command(b"GET", b"big")
        else:
            first.sendall(command(b"RPUSH", b"big", *[b"x" * 1_024] * (VALUE_MIB << 10)))
            ask = command(b"LRANGE", b"big", b"0", b"-1")
        assert first.recv(100)
        before = server.rss_mib()
        peers = [connected(server, stack, buffer=4_096) for _ in range(CLIENTS)]
        most = 0.0
        for n, peer in enumerate(peers):
            peer.sendall(ask)
            other.push(f"job-{n:04d}")  # the server serves other clients
            most = max(most, server.rss_mib())
        wait_until(lambda: "limits.reply_memory_mib" in server.log(), "the line in the log")
        other.push("job-last")
        most = max(most, server.rss_mib())
        assert most - before < BUDGET_MIB + _BESIDE_MIB, "60 clients of 6 MiB each would take 360 MiB"
        # All connections that were not closed had read nothing for a second by then, so they are closed.
        wait_until(lambda: reads_all(server, ask), "the whole reply, for a client that reads")
