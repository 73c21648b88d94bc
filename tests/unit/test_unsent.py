"""Leases whose reply never reached the socket are given back when the connection is lost (MODEL section 8)."""

from typing import Any

import pytest

from crossdock.model.states import State
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server.limits import Limits
from tests.support.socketless_server import SocketlessServer

#: Its replies are some 250 bytes: the buffer is full with three of them, and never has less than two in it while it is.
UNREAD = 800


@pytest.fixture
def house() -> SocketlessServer:
    made = SocketlessServer(FaktoryProtocol())
    made.limits = Limits(unread_bytes=UNREAD)
    return made


def worker(house: SocketlessServer) -> tuple[Any, Any]:
    connection, transport = house.connect()
    house.say(connection, 'HELLO {"v":2,"wid":"worker-01"}')
    return connection, transport


def with_jobs(house: SocketlessServer, jobs: int, args: str = "[]") -> None:
    connection, _ = worker(house)
    for number in range(jobs):
        house.say(connection, f'PUSH {{"jid":"job-{number:04}","jobtype":"x","args":{args}}}')


def leased(house: SocketlessServer) -> int:
    return len(house.look(State.LEASED))


def test_of_a_peer_that_stopped_to_read_and_is_gone(house: SocketlessServer) -> None:
    with_jobs(house, 6)
    connection, transport = worker(house)
    for _ in range(3):
        house.say(connection, "FETCH default")
    transport.written = connection.pause_writing  # the next one fills the buffer
    house.say(connection, "FETCH default")
    assert leased(house) == 4
    connection.connection_lost(ConnectionResetError())
    house.sync()
    assert leased(house) == 3, "of what was said before the peer may have heard"
    assert house.look(State.READY) == [("x", 0, 0)] * 3, "not counted"


def test_of_one_large_job(house: SocketlessServer) -> None:
    with_jobs(house, 1, f'["{"x" * 2_000}"]')
    connection, transport = worker(house)
    transport.written = connection.pause_writing
    house.say(connection, "FETCH default")
    connection.connection_lost(None)
    house.sync()
    assert leased(house) == 0


def test_only_what_cannot_have_been_sent(house: SocketlessServer) -> None:
    with_jobs(house, 8)
    connection, transport = worker(house)
    connection.data_received(b"FETCH default\r\n" * 8)
    transport.written = connection.pause_writing
    house.sync()
    before = leased(house)
    assert before > 4
    connection.connection_lost(None)
    house.sync()
    assert 0 < leased(house) < before, "the first may have left the buffer before the last came"


def test_a_peer_that_reads_again_has_them(house: SocketlessServer) -> None:
    with_jobs(house, 1)
    connection, transport = worker(house)
    transport.written = connection.pause_writing
    house.say(connection, "FETCH default")
    connection.resume_writing()
    connection.connection_lost(None)
    house.sync()
    assert leased(house) == 1
