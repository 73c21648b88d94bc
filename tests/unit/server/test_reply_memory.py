"""Unread replies: one budget for all connections. The connection with the most is closed first."""

from typing import Any

import pytest

from crossdock.model.states import State
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.server.connection_registry import Limits
from crossdock.server.reply_queue import LARGE_REPLY
from tests.support.socketless_server import SocketlessServer, Transport

BUDGET = 1_050_000


@pytest.fixture
def server() -> SocketlessServer:
    made = SocketlessServer(RedisProtocol())
    made.limits = Limits(reply_memory_bytes=BUDGET)
    return made


def peer(server: SocketlessServer, *, reads: bool = True) -> tuple[Any, Transport]:
    connection, transport = server.connect()
    transport.reads = reads
    return connection, transport


def held(server: SocketlessServer) -> int:
    """Bytes of replies that wait for the journal."""
    return sum(len(data) + len(getattr(outlet, "data", b"")) for outlet, data, _ in server.commit._replies)


def look(server: SocketlessServer) -> None:
    for _ in server.count_all_replies():
        server.sync()


def with_values(server: SocketlessServer, *sizes: int) -> None:
    connection, _ = peer(server)
    for size in sizes:
        connection.data_received(
            b"*3\r\n$3\r\nSET\r\n$%d\r\n%d\r\n$%d\r\n%b\r\n" % (len(str(size)), size, size, b"x" * size)
        )
        server.sync()


def test_unread_replies_take_no_more_than_the_budget(
    server: SocketlessServer, caplog: pytest.LogCaptureFixture
) -> None:
    with_values(server, 200_000, 300_000)
    peers = [peer(server, reads=False) for _ in range(10)]
    closed: list[int] = []
    for n, (connection, _) in enumerate(peers):
        server.say(connection, f"GET {300_000 if n == 2 else 200_000}")
        assert server.reply_bytes <= BUDGET
        closed += [m for m, (_, transport) in enumerate(peers) if transport.aborted and m not in closed]
    assert closed[0] == 2, "the largest is closed first"
    assert len(closed) == 5
    assert caplog.text.count("limits.reply_memory_mib") == 1, "logged once"
    for connection, _ in peers:
        connection.connection_lost(None)
    assert server.reply_bytes == 0


def test_a_peer_that_reads_is_not_closed(server: SocketlessServer) -> None:
    with_values(server, 200_000)
    connection, transport = peer(server)
    slow, unread = peer(server, reads=False)
    for _ in range(3):
        server.say(slow, "GET 200000")
    for _ in range(20):
        server.say(connection, "GET 200000")
    assert not transport.aborted and not unread.aborted
    assert transport.heard.count(b"$200000") == 20


def test_replies_that_wait_for_the_journal_count(server: SocketlessServer) -> None:
    """All replies of one pass: none of them has reached a socket yet."""
    with_values(server, 200_000)
    peers = [peer(server) for _ in range(20)]
    for connection, _ in peers:
        connection.data_received(b"GET 200000\r\n")
        assert held(server) <= BUDGET + 200_000, "replies of a closed connection are freed at once"
    assert sum(transport.aborted for _, transport in peers) == 15
    server.sync()
    assert sum(transport.heard.startswith(b"$200000") for _, transport in peers) == 5


def test_small_replies_are_counted_once_a_second(server: SocketlessServer) -> None:
    with_values(server, LARGE_REPLY // 2)
    peers = [peer(server, reads=False) for _ in range(10)]
    for _ in range(20):
        for connection, _ in peers:
            server.say(connection, f"GET {LARGE_REPLY // 2}")
    assert not any(transport.aborted for _, transport in peers)
    look(server)
    assert sum(transport.aborted for _, transport in peers) == 4 and server.reply_bytes <= BUDGET


def test_subscribers_that_do_not_read_count(server: SocketlessServer) -> None:
    server.limits = Limits(reply_memory_bytes=BUDGET, reply_buffer_bytes=50_000)
    with_values(server, 10)
    publisher, _ = peer(server)
    hearers = [peer(server, reads=False) for _ in range(10)]
    for connection, _ in hearers:
        server.say(connection, "SUBSCRIBE news")
        connection.pause_writing()
    for _ in range(12):
        server.say(publisher, f"PUBLISH news {'x' * 10_000}")
        assert server.reply_bytes <= BUDGET
    assert sum(transport.aborted for _, transport in hearers) == 2


def test_a_lease_whose_reply_was_dropped_is_given_back() -> None:
    server = SocketlessServer(FaktoryProtocol())
    server.limits = Limits(reply_memory_bytes=60_000)
    pusher, _ = server.connect()
    server.say(pusher, 'HELLO {"v":2}')
    for n in range(2):
        server.say(pusher, f'PUSH {{"jid":"job-{n:04}","jobtype":"x","args":["{"x" * 50_000}"]}}')
    workers = [server.connect() for _ in range(2)]
    for n, (connection, _) in enumerate(workers):
        server.say(connection, f'HELLO {{"v":2,"wid":"worker-{n}"}}')
    for connection, _ in workers:
        connection.data_received(b"FETCH default\r\n")
    assert [transport.aborted for _, transport in workers].count(True) == 1
    server.sync()
    assert server.look(State.LEASED) == [("x", 1, 0)]
    assert server.look(State.READY) == [("x", 0, 0)], "the attempt is not counted"


def test_a_peer_that_has_stopped_reading_is_closed_before_one_that_reads(server: SocketlessServer) -> None:
    """Otherwise peers that never read could use up the budget, a little each, and large replies would be impossible."""
    with_values(server, 200_000, 400_000)
    peers = [peer(server, reads=False) for _ in range(5)]
    for connection, _ in peers:
        server.say(connection, "GET 200000")
    for _ in range(2):
        look(server)
    connection, transport = peer(server)
    server.say(connection, "GET 400000")
    assert not transport.aborted and transport.heard.startswith(b"$400000")
    assert sum(each.aborted for _, each in peers) == 2


def test_a_peer_that_reads_does_not_count_as_stalled(server: SocketlessServer) -> None:
    """At each count a reply of a few bytes waits for the journal, though the peer reads."""
    with_values(server, 200_000)
    busy, transport = peer(server)
    for _ in range(3):
        busy.data_received(b"SET a b\r\n")
        look(server)
    for _ in range(10):
        connection, _ = peer(server, reads=False)
        connection.data_received(b"GET 200000\r\n")
    server.sync()
    assert not transport.aborted and transport.heard == b"+OK\r\n" * 3
