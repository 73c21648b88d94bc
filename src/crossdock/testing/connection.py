"""A connection in this process: bytes go to a protocol's session, and its replies are collected, as the server does."""

from collections import deque
from math import inf
from typing import Any

from crossdock.protocols.base import Answer, Close, Grant, Slices, Subscriber, Wait, WireProtocol
from crossdock.server.waiters import Waiter
from crossdock.testing.dispatcher import LocalDispatcher


class LocalConnection:
    """One connection to any protocol. `send` passes input, `said` collects the output."""

    def __init__(self, dispatcher: LocalDispatcher, protocol: WireProtocol) -> None:
        self._dispatcher = dispatcher
        self.session: Any = protocol.session(dispatcher, self.close)
        self.said = bytearray(self.session.greeting())
        if isinstance(self.session, Subscriber):
            self.session.push = self.said.extend
        self.is_closed = False
        self.until = dispatcher.now.steady + protocol.handshake_s if protocol.handshake_s else inf
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

    def take(self) -> bytes:
        """The output since the last call."""
        said = bytes(self.said)
        self.said.clear()
        return said

    def close(self) -> None:
        """End the connection, closed by either side."""
        if self.is_closed:
            return
        self.is_closed = True
        self.until = inf
        self._dispatcher.timed.remove(self)
        self._requests.clear()
        if self._waiter is not None:
            self._dispatcher.waits.remove(self._waiter)
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
        self._dispatcher.waits.remove(waiter)
        self._woken(waiter.wait.ask(True))

    def _woken(self, answer: Answer) -> None:
        self._waiter = None
        self.until = inf
        self._take(answer)
        self._pump()

    def _pump(self) -> None:
        while self._requests and self._waiter is None and not self.is_closed:
            self._take(self.session.handle(self._requests.popleft()))
            if self.session.identified and self._waiter is None:
                self.until = inf
        if not self._requests and self._waiter is None and not self.is_closed:
            broken = self.session.broken()
            if broken is not None:
                self._take(broken)

    def _take(self, answer: Answer) -> None:
        if isinstance(answer, Wait):
            self._waiter = self._dispatcher.waits.add(answer, self._woken)
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


def run_out(slices: Slices, said: bytearray | None = None) -> bytes | Grant | Close | Wait:
    """Run all slices of a long request, without the pauses between them. Partial replies are appended to `said`."""
    while True:
        try:
            step = next(slices)
            if said is not None and isinstance(step, bytes):
                said += step
        except StopIteration as end:
            answer: bytes | Grant | Close | Wait = end.value
            return answer
