"""Connections without sockets: pass bytes to a protocol and collect its replies, as the server does."""

from collections import deque
from typing import Any

from crossdock.protocols.base import Answer, Close, Grant, Slices, Subscriber, Wait
from crossdock.protocols.base import WireProtocol as AnyProtocol
from crossdock.protocols.faktory.protocol import Challenge, FaktoryProtocol
from crossdock.protocols.faktory.session import FaktorySession
from crossdock.server.waiters import Waiter
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


class Peer:
    """One connection to any protocol. `send` passes input, `said` collects the output."""

    end = b"\r\n"  #: line end of its requests and of the replies

    def __init__(self, dispatcher: PlainDispatcher, protocol: AnyProtocol) -> None:
        self.dispatcher = dispatcher
        self.session: Any = protocol.session(dispatcher, self.close)
        self.said = bytearray(self.session.greeting())
        if isinstance(self.session, Subscriber):
            self.session.push = self.said.extend
        self.is_closed = False
        self.until = dispatcher.now.steady + protocol.handshake_s if protocol.handshake_s else NEVER
        self._requests: deque[Any] = deque()
        self._waiter: Waiter | None = None
        dispatcher.timed.append(self)

    @property
    def is_waiting(self) -> bool:
        return self._waiter is not None

    def send(self, data: bytes) -> None:
        if not self.is_closed:
            self._requests.extend(self.session.receive(data))
            self._pump()

    def ask(self, line: str) -> bytes:
        """Send one line and return the immediate reply."""
        self.take()
        self.send(line.encode() + self.end)
        return self.take()

    def take(self) -> bytes:
        said = bytes(self.said)
        self.said.clear()
        return said

    def close(self) -> None:
        """End the connection, closed by either side."""
        if self.is_closed:
            return
        self.is_closed = True
        self.until = NEVER
        self.dispatcher.timed.remove(self)
        self._requests.clear()
        if self._waiter is not None:
            self.dispatcher.waits.remove(self._waiter)
            self._waiter = None
        work: Slices | None = self.session.closed()
        if work is not None:
            run_out(work)

    def late(self) -> None:
        """A deadline has passed: that of the handshake or that of a wait."""
        waiter = self._waiter
        if waiter is None:
            self.close()
            return
        self.dispatcher.waits.remove(waiter)
        self._woken(waiter.wait.ask(True))

    def _woken(self, answer: Answer) -> None:
        self._waiter = None
        self.until = NEVER
        self._take(answer)
        self._pump()

    def _pump(self) -> None:
        while self._requests and self._waiter is None and not self.is_closed:
            self._take(self.session.handle(self._requests.popleft()))
            if self.session.identified and self._waiter is None:
                self.until = NEVER
        if not self._requests and self._waiter is None and not self.is_closed:
            broken = self.session.broken()
            if broken is not None:
                self._take(broken)

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Wait):
            self._waiter = self.dispatcher.waits.add(answer, self._woken)
            self.until = answer.until
        elif isinstance(answer, Close):
            self.said += answer.reply
            self.close()
        elif isinstance(answer, bytes):
            self.said += answer
        elif isinstance(answer, Grant):
            self.said += answer.reply
        else:
            self._take(run_out(answer, self.said))


class Conversation(Peer):
    """A connection to the Faktory protocol."""

    session: FaktorySession


def run_out(slices: Slices, said: bytearray | None = None) -> bytes | Grant | Close | Wait:
    """Run all slices of a long request. Partial replies are appended to `said`."""
    while True:
        try:
            step = next(slices)
            if said is not None and isinstance(step, bytes):
                said += step
        except StopIteration as end:
            answer: bytes | Grant | Close | Wait = end.value
            return answer


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
