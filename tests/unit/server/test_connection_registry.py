"""The registry of connections: its limits, and the memory of incomplete requests."""

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server import connection_registry
from crossdock.server.connection_registry import Limits
from crossdock.server.flow_control import PIECE
from tests.support.socketless_server import SocketlessServer, Transport

HELLO = 'HELLO {"v":2}'


@pytest.fixture
def server() -> SocketlessServer:
    return SocketlessServer(FaktoryProtocol())


def peer(server: SocketlessServer) -> tuple[Any, Transport]:
    connection, transport = server.connect()
    server.say(connection, HELLO)
    return connection, transport


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_unidentified_connections_do_not_count_towards_the_limit(server: SocketlessServer) -> None:
    server.limits = Limits(connections=2)
    silent = [server.connect() for _ in range(5)]
    (first, one), (_, two), (_, three) = peer(server), peer(server), peer(server)
    assert one.heard.endswith(b"+OK\r\n") and two.heard.endswith(b"+OK\r\n")
    assert three.heard.endswith(b"-ERR too many connections: 3\r\n")
    first.connection_lost(None)
    _, four = peer(server)
    assert four.heard.endswith(b"+OK\r\n"), "a refused connection does not count"
    assert len(server.connections) == len(silent) + 3


def test_unidentified_connections_are_bounded(server: SocketlessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_registry, "UNIDENTIFIED_MOST", 3)
    server.limits = Limits(connections=2)
    transports = [server.connect()[1] for _ in range(6)]
    assert [transport.aborted for transport in transports] == [False] * 5 + [True]


def test_the_client_with_the_largest_incomplete_request_is_closed(
    server: SocketlessServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.limits = Limits(request_memory_bytes=1_000)
    (one, greedy), (two, modest) = peer(server), peer(server)
    one.data_received(b"PUSH " + b"a" * 595)
    two.data_received(b"PUSH " + b"b" * 195)
    assert server.incomplete_bytes == 800
    two.data_received(b"b" * 300)
    assert greedy.aborted and not modest.aborted and server.incomplete_bytes == 500
    assert "limits.request_memory_mib" in caplog.text
    one.connection_lost(None)
    two.data_received(b"\n")
    server.sync()
    assert server.incomplete_bytes == 0 and modest.heard.count(b"-ERR") == 1
    three, _ = peer(server)
    three.data_received(b"PUSH " + b"a" * 1_000)
    assert three.is_closing() and caplog.text.count("closed the connection with the most") == 1, "logged once"


def test_a_sliced_request_counts_as_incomplete_until_it_is_answered(server: SocketlessServer) -> None:
    """Slices of refused jobs are delayed. A client that sends them repeatedly would otherwise fill the memory."""
    server.limits = Limits(request_memory_bytes=100_000)
    line = b"PUSHB [" + b",".join([b"{}"] * 20_000) + b"]\n"
    (one, first), (two, second) = peer(server), peer(server)
    for each, at in ((one, 55_000), (two, 50_000)):
        for piece in (line[:at], line[at:]):
            for begin in range(0, len(piece), PIECE):
                each.data_received(piece[begin : begin + PIECE])
    assert first.aborted and not second.aborted and 50_000 <= server.incomplete_bytes < len(line)
    one.connection_lost(None)
    server.sync()
    assert second.heard.endswith(b'{"":"jobs must have a reasonable jid parameter"}\r\n')
    assert server.incomplete_bytes == 0


def test_a_refusal_counts_until_its_reply_is_sent(server: SocketlessServer, caplog: pytest.LogCaptureFixture) -> None:
    """The errors for a million jids that are too short take 200 MB."""
    server.limits = Limits(reply_memory_bytes=1_000_000)
    (one, modest), (two, greedy) = peer(server), peer(server)
    for each, jobs in ((one, 1_000), (two, 10_000)):
        each.data_received(b"PUSHB [" + b",".join(b'{"jid":"%d"}' % n for n in range(jobs)) + b"]\n")
    server.sync()
    assert greedy.aborted and not modest.aborted
    assert "limits.reply_memory_mib" in caplog.text
    two.connection_lost(None)
    server.sync()
    assert modest.heard.count(b"reasonable jid") == 1_000 and server.incomplete_bytes == server.reply_bytes == 0


@pytest.mark.usefixtures("uncollected")
def test_an_incomplete_request_is_freed_with_its_connection(server: SocketlessServer) -> None:
    """At once, not by the garbage collector: a client that repeats it would be faster."""
    connection, _ = peer(server)
    lines = connection._session._lines
    connection.data_received(b"PUSH " + b"a" * 1_000_000)
    server.sync()
    assert lines._kept.size == 1_000_005
    connection.connection_lost(None)
    server.sync()
    del connection
    holders = [each for each in gc.get_referrers(lines) if type(each).__name__ != "frame"]
    assert holders == [], "only this test refers to it"


def test_a_line_that_is_too_long_is_not_kept_in_memory(server: SocketlessServer) -> None:
    connection, transport = peer(server)
    lines = connection._session._lines
    connection.data_received(b"PUSH " + b"a" * (16 * 1024 * 1024 - 8 * PIECE))
    server.sync()
    connection.data_received(b"a" * 8 * PIECE)
    server.sync()
    assert lines._kept.size == 0 and server.incomplete_bytes <= 8 * PIECE
    server.loop.advance(3.3)  # two hundred times 16 MiB at 1 GB/s
    server.sync()
    assert b"-ERR" not in transport.heard
    server.loop.advance(0.1)
    server.sync()
    assert transport.heard.endswith(b"-ERR line too long\r\n")


@pytest.mark.usefixtures("uncollected")
def test_a_sliced_request_is_freed_with_its_connection(
    server: SocketlessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while its next slice is delayed."""
    monkeypatch.setattr("crossdock.protocols.faktory.push.delay_for", lambda held_up: 60.0)
    connection, _ = peer(server)
    server.say(connection, "PUSHB [" + ",".join(["{}"] * 3_000) + "]")
    work = weakref.ref(connection._pending.request._work)
    assert work() is not None
    connection.connection_lost(None)
    server.sync()
    server.loop.advance(0)
    assert work() is None


def test_a_shutdown_while_the_error_for_a_long_line_is_delayed_sends_it(server: SocketlessServer) -> None:
    connection, transport = peer(server)
    connection.data_received(b"PUSH " + b"a" * 17_000_000)
    server.sync()
    connection.shut_down(time.monotonic() + 1)
    server.sync()
    assert transport.heard.endswith(b"+OK\r\n-ERR line too long\r\n") and transport.eof
