"""A blocking stream of lines over a socket, cut by the same code as the server's."""

import socket
from collections import deque
from typing import Final

from crossdock.client.errors import Broken
from crossdock.wire.lines import Lines

#: A job of the largest size a door takes, and what is told around it.
LINE_BYTES: Final = 300 * 1024 * 1024
_CHUNK: Final = 256 * 1024


class Stream:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lines = Lines(LINE_BYTES)
        self._read: deque[bytes] = deque()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Broken(f"the server hung up: {error.strerror or error}") from error

    def line(self) -> bytes:
        """The next line, without its end. Raises Broken."""
        while not self._read:
            try:
                data = self._socket.recv(_CHUNK)
            except TimeoutError as error:
                raise Broken("the server did not answer in time") from error
            except OSError as error:
                raise Broken(f"the connection was lost: {error.strerror or error}") from error
            if not data:
                raise Broken("the server ended the connection")
            self._read.extend(self._lines.receive(data))
            if self._lines.overrun:
                raise Broken("the server's answer is too long")
        return self._read.popleft()

    def close(self) -> None:
        self._socket.close()
