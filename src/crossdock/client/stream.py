"""A blocking stream of lines, and of blocks of known length, over a socket."""

import socket
from typing import Final

from crossdock.client.errors import Broken, NoServer

#: A job of the largest size a door takes, and what is told around it.
LINE_BYTES: Final = 300 * 1024 * 1024
_CHUNK: Final = 256 * 1024


class Stream:
    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._read = bytearray()

    def send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Broken(f"the server hung up: {error.strerror or error}") from error

    def line(self) -> bytes:
        """The next line, without its end. Raises Broken."""
        seen = 0
        while (end := self._read.find(b"\n", seen)) < 0:
            seen = len(self._read)
            if seen > LINE_BYTES:
                raise Broken("the server's answer is too long")
            self._more()
        line = bytes(self._read[:end]).removesuffix(b"\r")
        del self._read[: end + 1]
        return line

    def block(self, size: int) -> bytes:
        """The next so many bytes, and the line end behind them. Raises Broken."""
        if size > LINE_BYTES:
            raise Broken("the server's answer is too long")
        while len(self._read) < size + 2:
            self._more()
        block = bytes(self._read[:size])
        if self._read[size : size + 2] != b"\r\n":
            raise Broken("the server's answer is not as long as it says")
        del self._read[: size + 2]
        return block

    def _more(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise Broken("the server did not answer in time") from error
        except OSError as error:
            raise Broken(f"the connection was lost: {error.strerror or error}") from error
        if not data:
            raise Broken("the server ended the connection")
        self._read += data

    def patience(self, seconds: float) -> None:
        """How long an answer may take from now on."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._socket.close()


def connect(what: str, host: str, port: int, path: str, timeout_s: float) -> Stream:
    """To a door, by a UNIX socket if there is a path. `what` is the door's name in the error. Raises NoServer."""
    try:
        if path:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_s)
            sock.connect(path)
        else:
            sock = socket.create_connection((host, port), timeout_s)
    except OSError as error:
        where = f"unix:{path}" if path else f"{host}:{port}"
        raise NoServer(f"no {what} door answers at {where}: {error.strerror or error}") from error
    return Stream(sock)
