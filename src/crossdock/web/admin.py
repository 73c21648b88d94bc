"""An asyncio client of the admin protocol, with a small pool of connections to the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from crossdock.model.errors import CrossdockError
from crossdock.protocols.admin.socket_path import reachable

#: Connections to the server. Further requests wait for a free one.
CONNECTIONS: Final = 8

#: Seconds for one request, waiting for a free connection included.
TIMEOUT_S: Final = 10.0

#: Longest reply.
_LINE_BYTES: Final = 64 * 1024 * 1024

#: A connection is not used again after this many idle seconds. The server closes it after five.
_IDLE_S: Final = 3.0


class ServerUnavailable(CrossdockError):
    """The server does not answer: it is starting, stopping or overloaded."""


class Refused(CrossdockError):
    """The server refused a request. The text is for the user."""


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Idle(NamedTuple):
    connection: _Connection
    since: float


class Admin:
    """Asks the server. Requests run side by side, each on a connection of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._idle: list[_Idle] = []
        self._slots = asyncio.Semaphore(CONNECTIONS)

    async def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send one request. Members that are None are omitted. Raises Refused or ServerUnavailable."""
        answer: dict[str, Any] = msgspec.json.decode(await self.ask_raw(do, **fields))
        return answer

    async def ask_raw(self, do: str, **fields: Any) -> bytes:
        """The reply as the server wrote it. Payloads keep numbers that fit no type of Python."""
        request = {"do": do} | {name: value for name, value in fields.items() if value is not None}
        return await self.send(msgspec.json.encode(request) + b"\n")

    async def send(self, line: bytes) -> bytes:
        """Send a whole request and return the line of the reply. Raises Refused or ServerUnavailable."""
        try:
            async with asyncio.timeout(TIMEOUT_S), self._connection() as connection:
                connection.writer.write(line)
                reply = await connection.reader.readline()
        except TimeoutError as error:
            raise ServerUnavailable(f"the server did not answer within {TIMEOUT_S:.0f} s") from error
        except (OSError, ValueError) as error:
            raise ServerUnavailable("the server does not answer; it may be starting or stopping") from error
        if not reply.endswith(b"\n"):
            raise ServerUnavailable("the server closed the connection; it may be stopping")
        if reply.startswith(b'{"error":'):
            raise Refused(msgspec.json.decode(reply)["error"])
        return reply

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        """A connection that goes back to the pool, unless the request on it failed or was cancelled."""
        async with self._slots:
            connection = self._take() or await self._open()
            try:
                yield connection
            except BaseException:
                connection.writer.close()
                raise
            if connection.reader.at_eof():
                connection.writer.close()
            else:
                self._idle.append(_Idle(connection, asyncio.get_running_loop().time()))

    def _take(self) -> _Connection | None:
        """The connection used last, if the server has not closed it and is not about to."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection, since = self._idle.pop()
            if now - since < _IDLE_S and not connection.reader.at_eof():
                return connection
            connection.writer.close()
        return None

    async def _open(self) -> _Connection:
        with reachable(self._folder) as path:
            return _Connection(*await asyncio.open_unix_connection(path, limit=_LINE_BYTES))

    async def close(self) -> None:
        for connection, _ in self._idle:
            connection.writer.close()
        self._idle.clear()
