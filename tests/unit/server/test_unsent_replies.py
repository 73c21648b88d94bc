"""Leases whose reply never reached the socket are given back when the connection is lost (model.md section 8)."""

from typing import Any

import pytest

from crossdock.model.states import State
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server.connection_registry import Limits
from tests.support.socketless_server import SocketlessServer

#: Replies have some 250 bytes: three of them fill the buffer, and at least two stay in it while it is full.
UNREAD = 800


@pytest.fixture
def server() -> SocketlessServer:
    made = SocketlessServer(FaktoryProtocol())
    made.limits = Limits(reply_buffer_bytes=UNREAD)
    return made


def worker(server: SocketlessServer) -> tuple[Any, Any]:
    connection, transport = server.connect()
    server.say(connection, 'HELLO {"v":2,"wid":"worker-01"}')
    return connection, transport


def with_jobs(server: SocketlessServer, jobs: int, args: str = "[]") -> None:
    connection, _ = worker(server)
    for number in range(jobs):
        server.say(connection, f'PUSH {{"jid":"job-{number:04}","jobtype":"x","args":{args}}}')


def leased(server: SocketlessServer) -> int:
    return len(server.look(State.LEASED))


def test_leases_of_a_lost_peer_that_stopped_reading_are_given_back(server: SocketlessServer) -> None:
    with_jobs(server, 6)
    connection, transport = worker(server)
    for _ in range(3):
        server.say(connection, "FETCH default")
    transport.written = connection.pause_writing  # the next one fills the buffer
    server.say(connection, "FETCH default")
    assert leased(server) == 4
    connection.connection_lost(ConnectionResetError())
    server.sync()
    assert leased(server) == 3, "the peer may have received the earlier replies"
    assert server.look(State.READY) == [("x", 0, 0)] * 3, "not counted"


def test_the_lease_of_one_large_unsent_reply_is_given_back(server: SocketlessServer) -> None:
    with_jobs(server, 1, f'["{"x" * 2_000}"]')
    connection, transport = worker(server)
    transport.written = connection.pause_writing
    server.say(connection, "FETCH default")
    connection.connection_lost(None)
    server.sync()
    assert leased(server) == 0


def test_only_leases_that_cannot_have_been_sent_are_given_back(server: SocketlessServer) -> None:
    with_jobs(server, 8)
    connection, transport = worker(server)
    connection.data_received(b"FETCH default\r\n" * 8)
    transport.written = connection.pause_writing
    server.sync()
    before = leased(server)
    assert before > 4
    connection.connection_lost(None)
    server.sync()
    assert 0 < leased(server) < before, "the first may have left the buffer before the last came"


def test_a_peer_that_reads_again_keeps_its_leases(server: SocketlessServer) -> None:
    with_jobs(server, 1)
    connection, transport = worker(server)
    transport.written = connection.pause_writing
    server.say(connection, "FETCH default")
    connection.resume_writing()
    connection.connection_lost(None)
    server.sync()
    assert leased(server) == 1
