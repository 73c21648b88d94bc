"""The server in the test's process, spoken to through its transport, as a client does."""

import threading
from collections.abc import Sequence

import pytest

from crossdock.client.address import Address
from crossdock.model.events import AnyEvent
from crossdock.model.states import State
from crossdock.testing.clock import Clock
from crossdock.testing.errors import WouldWait
from crossdock.testing.server import LocalServer, LocalTransport

WALL = 1_800_000_000.0


@pytest.fixture
def events() -> list[AnyEvent]:
    return []


@pytest.fixture
def server(events: list[AnyEvent]) -> LocalServer:
    def observe(more: Sequence[AnyEvent]) -> None:
        events.extend(more)

    return LocalServer(WALL, observe)


@pytest.fixture
def clock(server: LocalServer) -> Clock:
    return Clock(server, lambda: None, lambda: None)


def connected(server: LocalServer) -> LocalTransport:
    transport = server.connect(Address(), 1.0)
    assert transport.receive() == b'+HI {"v":2}\r\n'
    transport.send(b'HELLO {"v":2}\r\n')
    assert transport.receive() == b"+OK\r\n"
    return transport


def ask(transport: LocalTransport, line: str) -> bytes:
    transport.send(line.encode() + b"\r\n")
    return transport.receive()


def states(server: LocalServer) -> list[State]:
    return [job.state for job in server.state.jobs.values()]


PUSH = 'PUSH {"jid":"job-00001","jobtype":"add","args":[1],"retry":1}'
FAIL = 'FAIL {"jid":"job-00001","errtype":"E","message":"m"}'


def test_requests_are_answered_while_they_are_sent(server: LocalServer, events: list[AnyEvent]) -> None:
    transport = connected(server)
    assert ask(transport, PUSH) == b"+OK\r\n"
    assert [type(event).__name__ for event in events] == ["Pushed"]
    assert b'"jid":"job-00001"' in ask(transport, "FETCH default")
    assert ask(transport, 'ACK {"jid":"job-00001"}') == b"+OK\r\n"
    assert states(server) == []


def test_connections_share_the_engine(server: LocalServer) -> None:
    one, other = connected(server), connected(server)
    ask(one, PUSH)
    assert b'"jid":"job-00001"' in ask(other, "FETCH default")


def test_a_retry_waits_for_the_clock(server: LocalServer, clock: Clock) -> None:
    transport = connected(server)
    ask(transport, PUSH)
    ask(transport, "FETCH default")
    ask(transport, FAIL)
    assert states(server) == [State.RETRYING]
    clock.advance("1h")
    assert states(server) == [State.READY]
    assert clock.time() == WALL + 3_600


def test_a_lease_expires_by_the_clock(server: LocalServer, clock: Clock) -> None:
    transport = connected(server)
    ask(transport, PUSH)
    ask(transport, "FETCH default")
    clock.advance("29m")
    assert states(server) == [State.LEASED]
    clock.advance("1m")
    assert states(server) == [State.RETRYING]


def test_a_request_that_waits_is_an_error_that_says_what_to_do(server: LocalServer) -> None:
    transport = connected(server)
    with pytest.raises(WouldWait, match=r"nothing happens meanwhile: FETCH default\. Run the jobs first"):
        ask(transport, "FETCH default")
    with pytest.raises(BrokenPipeError):
        transport.send(b"INFO\r\n")


def test_a_closed_connection_returns_no_more_bytes(server: LocalServer) -> None:
    transport = connected(server)
    assert ask(transport, "END") == b"+OK\r\n"
    assert transport.receive() == b""


def test_threads_push_at_the_same_time(server: LocalServer) -> None:
    def push(thread: int) -> None:
        transport = connected(server)
        for number in range(100):
            ask(transport, f'PUSH {{"jid":"{thread}-{number:08}","jobtype":"add","args":[]}}')

    threads = [threading.Thread(target=push, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.state.jobs) == 800
