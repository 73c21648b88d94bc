"""The handshake deadline, also after a stall of the server."""

import pytest

from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server.idle_timeout import CATCH_UP_S
from tests.support.socketless_server import SocketlessServer


@pytest.fixture
def server() -> SocketlessServer:
    return SocketlessServer(FaktoryProtocol())


def test_a_client_without_hello_in_time_is_closed(server: SocketlessServer) -> None:
    _, transport = server.connect()
    server.loop.advance(1.9)
    assert not transport.aborted
    server.loop.advance(0.1)
    assert transport.aborted


@pytest.mark.parametrize("spoke", [True, False])
def test_requests_sent_during_a_stall_are_read_first(server: SocketlessServer, spoke: bool) -> None:
    peer, transport = server.connect()
    server.loop.advance(10.0)
    assert not transport.aborted
    if spoke:
        server.say(peer, 'HELLO {"v":2}')
    server.loop.advance(CATCH_UP_S)
    assert transport.aborted is not spoke
