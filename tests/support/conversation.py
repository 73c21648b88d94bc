"""Connections of a test without sockets: each has a dispatcher with a manual clock."""

from typing import Any

from crossdock.protocols.base import WireProtocol as AnyProtocol
from crossdock.protocols.faktory.protocol import Challenge, FaktoryProtocol
from crossdock.protocols.faktory.session import FaktorySession
from crossdock.testing.connection import LocalConnection
from tests.support.dispatcher import NEVER, PlainDispatcher
from tests.support.resp import replies

PROTOCOL_TICK_S = 5.0


class ClockedFaktory(FaktoryProtocol):
    """A Faktory protocol with a known challenge whose timers run on the dispatcher's clock."""

    def __init__(self, dispatcher: PlainDispatcher, known: Challenge | None = None, **settings: Any) -> None:
        super().__init__(**settings, clock=lambda: dispatcher.now.steady)
        self._known = known
        self._dispatcher = dispatcher
        self._next = dispatcher.now.steady + PROTOCOL_TICK_S
        dispatcher.timed.append(self)

    @property
    def until(self) -> float:
        if not self.workers.by_wid:
            return NEVER
        while self._next < self._dispatcher.now.steady:
            self._next += PROTOCOL_TICK_S
        return self._next

    def challenge(self) -> Challenge | None:
        return self._known or super().challenge()

    def late(self) -> None:
        self._next += PROTOCOL_TICK_S
        self.tick(self._dispatcher)


class Peer(LocalConnection):
    """One connection to any protocol of a test's dispatcher."""

    end = b"\r\n"  #: line end of its requests and of the replies

    def __init__(self, dispatcher: PlainDispatcher, protocol: AnyProtocol) -> None:
        super().__init__(dispatcher, protocol)
        self.dispatcher = dispatcher

    def ask(self, line: str) -> bytes:
        """Send one line and return the immediate reply."""
        self.take()
        self.send(line.encode() + self.end)
        return self.take()


class Conversation(Peer):
    """A connection to the Faktory protocol."""

    session: FaktorySession


def worker(dispatcher: PlainDispatcher, protocol: FaktoryProtocol, wid: str = "") -> Conversation:
    """A connection that has completed its handshake."""
    peer = Conversation(dispatcher, protocol)
    hello = f'HELLO {{"v":2,"wid":"{wid}"}}' if wid else 'HELLO {"v":2}'
    assert peer.ask(hello) == b"+OK\r\n"
    return peer


def say(peer: Conversation, line: bytes) -> bytes:
    """Send one line and check that it gets one well-formed reply and that the connection stays open."""
    peer.send(line + b"\r\n")
    said = peer.take()
    assert len(replies(said)) == 1, f"expected one reply: {said!r}"
    assert not peer.is_closed
    return said
