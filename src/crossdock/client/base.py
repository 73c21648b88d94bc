"""A blocking stream of lines, and of blocks of known length, over a socket."""

import socket
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from crossdock.model.errors import CrossdockError

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


# What is closed at the end of its `with` block.


class Closes(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# What can go wrong between a client and a server.
#
# CrossdockError
# └── ClientError
#     ├── NoServer       nobody answers there
#     ├── Refused        the server said no; the text is its own
#     └── Broken         the connection ended, or what came over it was no answer


class ClientError(CrossdockError):
    """Something between this client and its server."""


class NoServer(ClientError):
    """Nobody answers where the server should be."""


class Refused(ClientError):
    """The server did not do it; the text is its own."""


class Broken(ClientError):
    """Whether the last request was carried out is not known."""


# What a worker does with a job, whatever the door: take it, then say what became of it.


class Taken(NamedTuple):
    """A job that was leased."""

    ident: str  #: as the door names it
    queue: str
    kind: str
    payload: bytes


#: Of a job that nobody settles, while its lease has nothing to do with the connection.
LEFT: Final = "it comes back when its lease ends"


class Worker(Protocol):
    left: str  #: what becomes of a job that is not settled before `close`

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of these queues; None: none came in that time. Raises ClientError."""

    def done(self, job: Taken) -> None:
        """Raises ClientError, also if the lease is over."""

    def failed(self, job: Taken, message: str) -> None:
        """Raises ClientError, also if the lease is over."""

    def close(self) -> None: ...
