"""Masenko on a connection: leases that the peer never received are given back, others fail, and the idle timeout."""

import pytest

from crossdock.model.states import State
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.server.connection_registry import Limits
from tests.support.socketless_server import SocketlessServer


@pytest.fixture
def server() -> SocketlessServer:
    return SocketlessServer(MasenkoProtocol())


def test_a_lease_that_was_not_received_is_given_back_and_the_others_fail(server: SocketlessServer) -> None:
    peer, transport = server.connect()
    server.say(peer, 'PUSH {"name":"heard"}', 'PUSH {"name":"unheard"}', "FETCH")
    assert transport.heard.endswith(b'"name":"heard"}\n')
    peer.data_received(b"FETCH\n")
    server.loop.run()  # decided, and not yet durable
    assert server.look(State.LEASED) == [("heard", 1, 0), ("unheard", 1, 0)]
    peer.connection_lost(None)
    server.sync()
    assert b"unheard" not in transport.heard
    assert server.look(State.READY) == [("unheard", 0, 0)]
    assert server.look(State.RETRYING) == [("heard", 1, 1)]


def test_a_peer_that_is_lost_while_it_waits_gets_no_job(server: SocketlessServer) -> None:
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


class TestIdleTimeout:
    def advance(self, server: SocketlessServer, seconds: float) -> int:
        fired = server.loop.advance(seconds)
        server.sync()
        return fired

    def test_an_idle_connection_is_closed(self, server: SocketlessServer) -> None:
        peer, transport = server.connect()
        server.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(server, 45.0)
        assert transport.heard.endswith(b'ERR {"msg":"no heartbeat"}\n')
        assert transport.eof
        assert server.look(State.RETRYING) == [("a", 1, 1)]

    def test_one_timer_however_many_requests(self, server: SocketlessServer) -> None:
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
    def test_a_stalled_server_reads_before_it_closes_idle_connections(
        self, server: SocketlessServer, spoke: bool
    ) -> None:
        peer, transport = server.connect()
        server.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(server, 60.0)  # nothing ran meanwhile, and timers run first
        assert not transport.eof
        if spoke:
            server.say(peer, "PING")
        self.advance(server, 0.25)
        assert transport.eof is not spoke
        assert len(server.look(State.LEASED)) == spoke
        self.advance(server, 45.0)
        self.advance(server, 0.25)
        assert transport.eof

    def test_the_timeout_does_not_run_while_a_reply_is_pending(self, server: SocketlessServer) -> None:
        """The disk stalls for a minute: the idle timeout does not run."""
        peer, transport = server.connect()
        peer.data_received(b'PUSH {"name":"a"}\n')
        server.loop.run()
        server.loop.advance(60.0)
        server.loop.run()
        assert transport.heard == b""
        server.sync()
        assert transport.heard == b'OK {"id":1}\n'

    def test_the_timeout_does_not_run_while_a_fetch_waits(self, server: SocketlessServer) -> None:
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


def test_a_connection_counts_towards_the_limit_from_the_start(server: SocketlessServer) -> None:
    server.limits = Limits(connections=0)
    _, transport = server.connect()
    server.sync()
    assert transport.heard == b'ERR {"msg":"too many connections: 1"}\n'
