"""Connections of the asyncio client. Requests are pipelined: each `ask` returns a future, and replies come in order."""

import asyncio
import os
import socket
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from crossdock.client.address import Address
from crossdock.client.errors import Broken, ClientError, NoServer
from crossdock.client.transport import Connect, Transport, no_unix_sockets, reason, tls_context, unreachable
from crossdock.client.wire import Features, Identity, Reply, Wire

if TYPE_CHECKING:
    import ssl


class Lane(ABC):
    """One connection. After an error it is dead, because replies are read in order."""

    def __init__(self, identity: Identity) -> None:
        self.wire = Wire(identity)
        self.waiting: deque[asyncio.Future[Reply]] = deque()
        self.dead: ClientError | None = None
        self.used = False  #: whether it has executed a request

    @property
    def features(self) -> Features:
        return self.wire.features

    @abstractmethod
    def ask(self, line: bytes) -> asyncio.Future[Reply]:
        """Send a request. The future raises Broken if the connection is lost."""

    @abstractmethod
    async def writable(self) -> None:
        """Returns when the server has read most of what was sent."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def abandon(self) -> None:
        """In the child process after a fork: close its copy of the connection, which belongs to the parent."""

    @abstractmethod
    def set_limit(self, seconds: float) -> None:
        """How long a reply may take from now on."""

    def _received(self, data: bytes) -> None:
        try:
            replies = self.wire.feed(data)
        except ClientError as error:
            self._fail(error)
            self.close()
            return
        waiting = self.waiting
        for reply in replies:
            if not waiting:
                self._fail(Broken("the server sent a reply without a request"))  # it shuts down
                self.close()
                return
            future = waiting.popleft()
            if not future.done():  # the caller may have given up
                future.set_result(reply)

    def _fail(self, error: ClientError) -> None:
        if self.dead is None:
            self.dead = error
        while self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_exception(self.dead)
                future.exception()  # the caller may have given up; asyncio would complain


class SocketLane(Lane, asyncio.Protocol):
    """Requests of one turn of the event loop are written together."""

    def __init__(self, identity: Identity, limit_s: float) -> None:
        super().__init__(identity)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._limit_s = limit_s
        self._watch: asyncio.TimerHandle | None = None
        self._replies = 0  #: pieces received, for the watch
        self._seen = 0
        self._paused: asyncio.Future[None] | None = None
        self.ready: asyncio.Future[None] = self._loop.create_future()

    # Called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._replies += 1
        if self.wire.ready:
            self._received(data)
            return
        try:
            answer = self.wire.greet(data)
        except ClientError as error:
            self._fail(error)
            self.close()
            return
        if answer and self._transport is not None:
            self._transport.write(answer)
        if self.wire.ready and not self.ready.done():
            self.ready.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        why = f"the connection was lost: {reason(error)}" if isinstance(error, OSError) else ""
        self._fail(Broken(why or "the server closed the connection"))
        if self._watch is not None:
            self._watch.cancel()

    def pause_writing(self) -> None:
        self._paused = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._paused is not None and not self._paused.done():
            self._paused.set_result(None)
        self._paused = None

    # Called by the client

    def ask(self, line: bytes) -> asyncio.Future[Reply]:
        future: asyncio.Future[Reply] = self._loop.create_future()
        if self.dead is not None:
            future.set_exception(self.dead)
            return future
        self.waiting.append(future)
        if not self._out:
            self._loop.call_soon(self._flush)
            if self._watch is None:
                self._rearm()
        self._out.append(line)
        return future

    def _flush(self) -> None:
        data = b"".join(self._out)
        self._out.clear()
        if self._transport is not None and self.dead is None:
            self._transport.write(data)

    async def writable(self) -> None:
        if self._paused is not None:
            await asyncio.shield(self._paused)

    def set_limit(self, seconds: float) -> None:
        self._limit_s = seconds
        if self._watch is not None:
            self._watch.cancel()
            self._rearm()

    def _rearm(self) -> None:
        """One timer for all requests: nothing must be waited for while nothing is received for that long."""
        self._seen = self._replies
        self._watch = self._loop.call_later(self._limit_s, self._look)

    def _look(self) -> None:
        if not self.waiting:
            self._watch = None
        elif self._replies != self._seen:
            self._rearm()
        else:
            self._fail(Broken("the server did not reply in time"))
            self.close()

    def _fail(self, error: ClientError) -> None:
        super()._fail(error)
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()
        self.resume_writing()

    def close(self) -> None:
        if self.dead is None:
            self._fail(Broken("the connection was closed"))
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._transport is not None and not self._loop.is_closed():
            self._transport.abort()

    def abandon(self) -> None:
        """The transport is kept, because it would otherwise tell the event loop, which the parent has a copy of."""
        _abandoned.append(self)
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        if sock is not None and sock.fileno() >= 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, sock.fileno())
            os.close(null)


_abandoned: list[SocketLane] = []


class InlineLane(Lane):
    """A transport that answers at once, such as a server in the same process. It must not wait."""

    def __init__(self, transport: Transport, identity: Identity) -> None:
        super().__init__(identity)
        self._transport = transport
        while not self.wire.ready:
            answer = self.wire.greet(self._more())
            if answer:
                transport.send(answer)

    def _more(self) -> bytes:
        try:
            data = self._transport.receive()
        except OSError as error:
            raise Broken(f"the connection was lost: {reason(error)}") from error
        if not data:
            raise Broken("the server closed the connection")
        return data

    def ask(self, line: bytes) -> asyncio.Future[Reply]:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        try:
            self._transport.send(line)
            while self.waiting:
                self._received(self._more())
        except OSError as error:
            self._fail(Broken(f"the connection was lost: {reason(error)}"))
        except Broken as error:
            self._fail(error)
        return future

    async def writable(self) -> None:
        return

    def set_limit(self, seconds: float) -> None:
        return

    def close(self) -> None:
        if self.dead is None:
            self.dead = Broken("the connection was closed")
        self._transport.close()

    def abandon(self) -> None:
        self._transport.close()


async def open_lane(
    address: Address, identity: Identity, timeout_s: float, connect: Connect | None, context: "ssl.SSLContext | None"
) -> Lane:
    """Connect, and do the handshake. Raises NoServer, Broken, WrongPassword or Refused."""
    if connect is not None:
        transport = connect(address, timeout_s)
        try:
            return InlineLane(transport, identity)
        except BaseException:
            transport.close()
            raise
    loop = asyncio.get_running_loop()
    lane = SocketLane(identity, timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            if address.path:
                if not hasattr(socket, "AF_UNIX"):
                    raise no_unix_sockets(address)
                await loop.create_unix_connection(lambda: lane, address.path)
            elif address.tls:
                context = context or tls_context(address)
                await loop.create_connection(lambda: lane, address.host, address.port, ssl=context)
            else:
                await loop.create_connection(lambda: lane, address.host, address.port)
            await lane.ready
    except TimeoutError as error:
        lane.close()
        raise NoServer(f"no server answers at {address}: no reply after {timeout_s:g} s") from error
    except OSError as error:
        lane.close()
        raise unreachable(address, error) from error
    except BaseException:
        with suppress(ClientError):
            lane.close()
        raise
    return lane
