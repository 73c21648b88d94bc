"""One connection of the blocking client, after its handshake."""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from crossdock.client.errors import Broken
from crossdock.client.transport import Transport, reason
from crossdock.client.wire import OK, OK_LINE, Identity, Reply, Wire


class Link:
    """Sends requests and reads replies. After an error it must be closed, because replies are read in order."""

    __slots__ = ("_feed", "_receive", "_replies", "_send", "_transport", "_wire", "features", "used")

    def __init__(self, transport: Transport, identity: Identity) -> None:
        """Does the handshake. Raises Broken, WrongPassword or Refused."""
        self._transport: Final = transport
        self._send: Callable[[bytes], Any] = transport.send
        self._receive: Callable[[], bytes] = transport.receive
        self._wire = Wire(identity)
        self._feed = self._wire.feed
        self._replies: deque[Reply] = deque()
        self.used = False  #: whether it has executed a request
        while not self._wire.ready:
            answer = self._wire.greet(self._more())
            if answer:
                self.send(answer)
        self.features = self._wire.features

    def ask(self, line: bytes) -> Reply:
        """Send one request and read its reply. Raises Broken."""
        try:
            self._send(line)
            data = self._receive()
        except OSError as error:
            raise _lost(error) from error
        if data == OK_LINE and not self._replies and self._wire.idle:
            return OK
        return self.read(data)

    def send(self, data: bytes) -> None:
        try:
            self._send(data)
        except OSError as error:
            raise _lost(error) from error

    def read(self, data: bytes | None = None) -> Reply:
        """The next reply. `data` was received already."""
        if data is not None:
            self._take(data)
        while not self._replies:
            self._take(self._more())
        return self._replies.popleft()

    def _take(self, data: bytes) -> None:
        if not data:
            raise Broken("the server closed the connection")
        self._replies.extend(self._feed(data))

    def _more(self) -> bytes:
        try:
            data = self._receive()
        except OSError as error:
            raise _lost(error) from error
        if not data:
            raise Broken("the server closed the connection")
        return data

    def settimeout(self, seconds: float) -> None:
        self._transport.settimeout(seconds)

    def close(self) -> None:
        self._transport.close()


def _lost(error: OSError) -> Broken:
    if isinstance(error, (TimeoutError, BlockingIOError)):
        return Broken("the server did not reply in time")
    return Broken(f"the connection was lost: {reason(error)}")
