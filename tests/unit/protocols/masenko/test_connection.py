"""The Masenko door behind a connection: what its peer never heard is given back, the rest failed; its silence."""

import pytest

from crossdock.model.states import State
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.server.limits import Limits
from tests.support.socketless_server import SocketlessServer


@pytest.fixture
def server() -> SocketlessServer:
    return SocketlessServer(MasenkoProtocol())


def test_a_lease_nobody_heard_of_is_given_back_and_the_others_fail(server: SocketlessServer) -> None:
    peer, transport = server.connect()
    server.say(peer, 'PUSH {"name":"heard"}', 'PUSH {"name":"unheard"}', "FETCH")
    assert transport.heard.endswith(b'"name":"heard"}\n')
    peer.data_received(b"FETCH\n")
    server.loop.run()  # decided, and on its way to the disk
    assert server.look(State.LEASED) == [("heard", 1, 0), ("unheard", 1, 0)]
    peer.connection_lost(None)
    server.sync()
    assert b"unheard" not in transport.heard
    assert server.look(State.READY) == [("unheard", 0, 0)]
    assert server.look(State.RETRYING) == [("heard", 1, 1)]


def test_a_peer_that_vanishes_while_it_waits_takes_nothing(server: SocketlessServer) -> None:
    peer, _ = server.connect()
    server.say(peer, "FETCH")
    peer.connection_lost(None)
    other, _ = server.connect()
    server.say(other, 'PUSH {"name":"a"}')
    assert server.look(State.READY) == [("a", 0, 0)]


def test_many_leases_are_failed_in_slices(server: SocketlessServer) -> None:
    peer, transport = server.connect()
    server.say(peer, "ATOMIC", *['PUSH {"name":"a"}'] * 1_200, "DONE", *["FETCH"] * 1_200)
    assert len(server.look(State.LEASED)) == 1_200
    peer.connection_lost(None)
    assert len(server.look(State.LEASED)) == 700
    server.loop.step()
    assert len(server.look(State.LEASED)) == 200
    server.sync()
    assert len(server.look(State.RETRYING)) == 1_200
    assert transport.heard.count(b"\n") == 1_201


class TestSilence:
    def advance(self, server: SocketlessServer, seconds: float) -> int:
        fired = server.loop.advance(seconds)
        server.sync()
        return fired

    def test_too_long(self, server: SocketlessServer) -> None:
        peer, transport = server.connect()
        server.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(server, 45.0)
        assert transport.heard.endswith(b'ERR {"msg":"no heartbeat"}\n')
        assert transport.eof
        assert server.look(State.RETRYING) == [("a", 1, 1)]

    def test_one_timer_however_often_it_speaks(self, server: SocketlessServer) -> None:
        peer, transport = server.connect()
        before = len(server.loop.alarms)
        for _ in range(100):
            server.say(peer, "PING")
            self.advance(server, 0.1)
        assert len(server.loop.alarms) == before
        fired = sum(self.advance(server, 0.05) for _ in range(860))
        assert fired == 1
        assert not transport.eof
        for _ in range(40):
            self.advance(server, 0.05)
        assert transport.eof

    @pytest.mark.parametrize("spoke", [True, False])
    def test_a_server_that_was_held_up_reads_before_it_judges(self, server: SocketlessServer, spoke: bool) -> None:
        peer, transport = server.connect()
        server.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(server, 60.0)  # nothing ran meanwhile, and timers come first
        assert not transport.eof
        if spoke:
            server.say(peer, "PING")
        self.advance(server, 0.25)
        assert transport.eof is not spoke
        assert len(server.look(State.LEASED)) == spoke
        self.advance(server, 45.0)
        self.advance(server, 0.25)
        assert transport.eof

    def test_not_while_a_reply_is_owed(self, server: SocketlessServer) -> None:
        """Its disk stalls for a minute: that is not the peer's silence."""
        peer, transport = server.connect()
        peer.data_received(b'PUSH {"name":"a"}\n')
        server.loop.run()
        server.loop.advance(60.0)
        server.loop.run()
        assert transport.heard == b""
        server.sync()
        assert transport.heard == b'OK {"id":1}\n'

    def test_not_while_it_waits(self, server: SocketlessServer) -> None:
        peer, transport = server.connect()
        self.advance(server, 30.0)
        server.say(peer, 'FETCH {"timeout":"45s"}')
        self.advance(server, 44.0)
        assert transport.heard == b""
        self.advance(server, 1.0)
        assert transport.heard == b"EMPTY {}\n"
        self.advance(server, 44.0)
        assert transport.heard == b"EMPTY {}\n"
        self.advance(server, 1.0)
        assert transport.eof


def test_it_is_welcome_from_the_start(server: SocketlessServer) -> None:
    server.limits = Limits(connections=0)
    _, transport = server.connect()
    server.sync()
    assert transport.heard == b'ERR {"msg":"too many connections: 1"}\n'
