"""The connections of the blocking client, which threads share without a lock."""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from crossdock.client.address import Address
from crossdock.client.errors import Broken, Closed
from crossdock.client.transport import Connect, Transport, reason
from crossdock.client.wire import OK, OK_LINE, Features, Identity, Reply, Wire


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


class Pool:
    """Hands out the connection that was used last, or a new one.

    Nothing is locked: the methods of sets and deques are atomic. More threads than the pool has connections open and
    close their own.
    """

    def __init__(self, connect: Connect, address: Address, identity: Identity, timeout_s: float, size: int) -> None:
        self._connect = connect
        self._address = address
        self._identity = identity
        self._timeout_s = timeout_s
        self._size = size
        self._idle: deque[Link] = deque()
        self._links: set[Link] = set()  #: also those that are in use
        self._closed = threading.Event()
        self.features: Features | None = None  #: of the newest connection
        _pools.add(self)

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    @property
    def in_use(self) -> int:
        """Connections that threads use at present."""
        return len(self._links) - len(self._idle)

    def take(self) -> Link:
        """Raises NoServer, Broken, Refused or Closed."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        self._check()
        transport = self._connect(self._address, self._timeout_s)
        try:
            link = Link(transport, self._identity)
        except BaseException:
            transport.close()
            raise
        self.features = link.features
        self._links.add(link)
        try:
            self._check()  # it may have been closed meanwhile
        except Closed:
            self.drop(link)
            raise
        return link

    def _check(self) -> None:
        if self._closed.is_set():
            raise Closed("the client was closed")

    def give(self, link: Link) -> None:
        link.used = True  # its age is not known when it is taken again
        if len(self._idle) >= self._size or link not in self._links or self._closed.is_set():
            self.drop(link)
        else:
            self._idle.append(link)

    def drop(self, link: Link) -> None:
        self._links.discard(link)
        link.close()

    def drop_idle(self) -> None:
        """The server may have been restarted: connections that were opened before are of no use."""
        while self._idle:
            try:
                self.drop(self._idle.pop())
            except IndexError:  # another thread was faster
                return

    def pause(self, seconds: float) -> None:
        """Returns early when the pool is closed."""
        self._closed.wait(seconds)

    def close(self) -> None:
        """Close all connections, also those that other threads wait on."""
        self._closed.set()
        self._idle.clear()
        for link in list(self._links):
            self.drop(link)

    def forget(self) -> None:
        """In the child process after a fork: the connections belong to the parent."""
        links, closed = list(self._links), self._closed.is_set()
        self._links = set()
        self._idle = deque()
        self._closed = threading.Event()  # another thread may have held the lock of the old one
        if closed:
            self._closed.set()
        for link in links:
            link.close()


#: All pools of this process, for a fork.
_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_forget_all)
