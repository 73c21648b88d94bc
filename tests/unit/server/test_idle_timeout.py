"""Time limits of a peer do not run while the server handles its request."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Form, Spec
from crossdock.protocols.admin.pages import PAUSE_S
from crossdock.protocols.base import Slices
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.server.connection import Connection
from tests.support import control_peer
from tests.support.socketless_server import SocketlessServer, Transport
from tests.support.states import RULES


def work_of(seconds: float, answer: bytes) -> Callable[..., Slices]:
    """Sliced work in place of the session's own."""

    def work(request: Any) -> Slices:
        yield seconds
        return answer

    return work


def test_an_admin_connection_is_not_closed_while_its_request_runs_in_slices() -> None:
    """The handshake deadline of 5 s used to close it: a sliced request did not count as received."""
    server = SocketlessServer(control_peer.admin_protocol())
    server.commit.do(
        Enqueue("faktory", [Spec(f"job-{n:05d}", "q", "mail", b"[]", Form.JSON, 0, RULES) for n in range(20_000)])
    )
    connection, transport = server.connect()
    after, done = None, 0
    began = server.loop.time()
    while True:
        transport.heard = b""
        connection.data_received(json.dumps({"do": "delete", "kind": "mail", "after": after}).encode() + b"\n")
        while not transport.heard:
            server.sync()
            server.loop.advance(1.0)
        assert not transport.aborted, f"after {server.loop.time() - began} s, {done} jobs"
        answer = json.loads(transport.heard)
        done, after = done + answer["done"], answer["after"]
        if after is None:
            break
    assert done == 20_000 and server.loop.time() - began > 10 * PAUSE_S


@pytest.mark.parametrize(
    ("protocol", "first"),
    [(FaktoryProtocol(), b'HELLO {"v":2}\n'), (RedisProtocol(password="x"), b"AUTH x\r\n")],
    ids=["faktory", "redis"],
)
def test_the_handshake_deadline_does_not_run_while_a_request_is_handled(
    protocol: FaktoryProtocol | RedisProtocol, first: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = SocketlessServer(protocol)
    connection, transport = server.connect()
    monkeypatch.setattr(connection, "_handle", work_of(30.0, b"-late\r\n"))
    connection.data_received(first)
    for _ in range(29):
        server.loop.advance(1.0)
        server.sync()
        assert not transport.aborted
    server.loop.advance(1.0)
    server.sync()
    assert transport.heard.endswith(b"-late\r\n")
    server.loop.advance(protocol.handshake_s)
    assert transport.aborted, "it is still not identified"


def test_the_idle_time_counts_from_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    server = SocketlessServer(MasenkoProtocol(heartbeat_s=45.0))
    connection, transport = server.connect()
    monkeypatch.setattr(connection._session, "handle", work_of(60.0, b"-late\n"))
    connection._handle = connection._session.handle
    connection.data_received(b"PUSH {}\n")
    seconds = _until_closed(server, connection, transport)
    assert transport.heard.startswith(b"-late\n")
    assert 60 + 45 <= seconds <= 60 + 46, "the idle time starts with the answer"


def _until_closed(server: SocketlessServer, connection: Connection, transport: Transport) -> int:
    for second in range(1, 300):
        server.loop.advance(1.0)
        server.sync()
        if connection.is_closing():
            return second
    raise AssertionError("never")
