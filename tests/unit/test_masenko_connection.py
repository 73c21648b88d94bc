"""The Masenko door behind a connection: what its peer never heard is given back, the rest failed; its silence."""

import pytest

from crossdock.model.states import State
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.server.limits import Limits
from tests.support.socketless_server import SocketlessServer


@pytest.fixture
def house() -> SocketlessServer:
    return SocketlessServer(MasenkoProtocol())


def test_a_lease_nobody_heard_of_is_given_back_and_the_others_fail(house: SocketlessServer) -> None:
    peer, transport = house.connect()
    house.say(peer, 'PUSH {"name":"heard"}', 'PUSH {"name":"unheard"}', "FETCH")
    assert transport.heard.endswith(b'"name":"heard"}\n')
    peer.data_received(b"FETCH\n")
    house.loop.run()  # decided, and on its way to the disk
    assert house.look(State.LEASED) == [("heard", 1, 0), ("unheard", 1, 0)]
    peer.connection_lost(None)
    house.sync()
    assert b"unheard" not in transport.heard
    assert house.look(State.READY) == [("unheard", 0, 0)]
    assert house.look(State.RETRYING) == [("heard", 1, 1)]


def test_a_peer_that_vanishes_while_it_waits_takes_nothing(house: SocketlessServer) -> None:
    peer, _ = house.connect()
    house.say(peer, "FETCH")
    peer.connection_lost(None)
    other, _ = house.connect()
    house.say(other, 'PUSH {"name":"a"}')
    assert house.look(State.READY) == [("a", 0, 0)]


def test_many_leases_are_failed_in_slices(house: SocketlessServer) -> None:
    peer, transport = house.connect()
    house.say(peer, "ATOMIC", *['PUSH {"name":"a"}'] * 1_200, "DONE", *["FETCH"] * 1_200)
    assert len(house.look(State.LEASED)) == 1_200
    peer.connection_lost(None)
    assert len(house.look(State.LEASED)) == 700
    house.loop.step()
    assert len(house.look(State.LEASED)) == 200
    house.sync()
    assert len(house.look(State.RETRYING)) == 1_200
    assert transport.heard.count(b"\n") == 1_201


class TestSilence:
    def advance(self, house: SocketlessServer, seconds: float) -> int:
        fired = house.loop.advance(seconds)
        house.sync()
        return fired

    def test_too_long(self, house: SocketlessServer) -> None:
        peer, transport = house.connect()
        house.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(house, 45.0)
        assert transport.heard.endswith(b'ERR {"msg":"no heartbeat"}\n')
        assert transport.eof
        assert house.look(State.RETRYING) == [("a", 1, 1)]

    def test_one_timer_however_often_it_speaks(self, house: SocketlessServer) -> None:
        peer, transport = house.connect()
        before = len(house.loop._timers)
        for _ in range(100):
            house.say(peer, "PING")
            self.advance(house, 0.1)
        assert len(house.loop._timers) == before
        fired = sum(self.advance(house, 0.05) for _ in range(860))
        assert fired == 1
        assert not transport.eof
        for _ in range(40):
            self.advance(house, 0.05)
        assert transport.eof

    @pytest.mark.parametrize("spoke", [True, False])
    def test_a_server_that_was_held_up_reads_before_it_judges(self, house: SocketlessServer, spoke: bool) -> None:
        peer, transport = house.connect()
        house.say(peer, 'PUSH {"name":"a"}', "FETCH")
        self.advance(house, 60.0)  # nothing ran meanwhile, and timers come first
        assert not transport.eof
        if spoke:
            house.say(peer, "PING")
        self.advance(house, 0.25)
        assert transport.eof is not spoke
        assert len(house.look(State.LEASED)) == spoke
        self.advance(house, 45.0)
        self.advance(house, 0.25)
        assert transport.eof

    def test_not_while_a_reply_is_owed(self, house: SocketlessServer) -> None:
        """Its disk stalls for a minute: that is not the peer's silence."""
        peer, transport = house.connect()
        peer.data_received(b'PUSH {"name":"a"}\n')
        house.loop.run()
        house.loop.advance(60.0)
        house.loop.run()
        assert transport.heard == b""
        house.sync()
        assert transport.heard == b'OK {"id":1}\n'

    def test_not_while_it_waits(self, house: SocketlessServer) -> None:
        peer, transport = house.connect()
        self.advance(house, 30.0)
        house.say(peer, 'FETCH {"timeout":"45s"}')
        self.advance(house, 44.0)
        assert transport.heard == b""
        self.advance(house, 1.0)
        assert transport.heard == b"EMPTY {}\n"
        self.advance(house, 44.0)
        assert transport.heard == b"EMPTY {}\n"
        self.advance(house, 1.0)
        assert transport.eof


def test_it_is_welcome_from_the_start(house: SocketlessServer) -> None:
    house.limits = Limits(connections=0)
    _, transport = house.connect()
    house.sync()
    assert transport.heard == b'ERR {"msg":"too many connections: 1"}\n'
