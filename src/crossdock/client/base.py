"""What the clients of all protocols share: a blocking stream over a socket, and the worker interface."""

import socket
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, NamedTuple, Protocol, Self

from crossdock.client.errors import Broken, NoServer

#: Longest reply: a job of the largest size, and its framing.
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
            raise Broken(f"the server closed the connection: {error.strerror or error}") from error

    def line(self) -> bytes:
        """The next line, without its line end. Raises Broken."""
        seen = 0
        while (end := self._read.find(b"\n", seen)) < 0:
            seen = len(self._read)
            if seen > LINE_BYTES:
                raise Broken("the server's reply is too long")
            self._more()
        line = bytes(self._read[:end]).removesuffix(b"\r")
        del self._read[: end + 1]
        return line

    def block(self, size: int) -> bytes:
        """The next `size` bytes, and the line end after them. Raises Broken."""
        if size > LINE_BYTES:
            raise Broken("the server's reply is too long")
        while len(self._read) < size + 2:
            self._more()
        block = bytes(self._read[:size])
        if self._read[size : size + 2] != b"\r\n":
            raise Broken("the length of the server's reply is wrong")
        del self._read[: size + 2]
        return block

    def _more(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise Broken("the server did not reply in time") from error
        except OSError as error:
            raise Broken(f"the connection was lost: {error.strerror or error}") from error
        if not data:
            raise Broken("the server closed the connection")
        self._read += data

    def set_timeout(self, seconds: float) -> None:
        """Seconds that a reply may take from now on."""
        self._socket.settimeout(seconds)

    def close(self) -> None:
        self._socket.close()


def connect(what: str, host: str, port: int, path: str, timeout_s: float) -> Stream:
    """Connect, over a UNIX socket if there is a path. `what` names the protocol in the error. Raises NoServer."""
    try:
        if path:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_s)
            sock.connect(path)
        else:
            sock = socket.create_connection((host, port), timeout_s)
    except OSError as error:
        where = f"unix:{path}" if path else f"{host}:{port}"
        raise NoServer(f"no {what} server at {where}: {error.strerror or error}") from error
    return Stream(sock)


# Base of clients that a `with` block closes.


class Closes(ABC):
    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# Taking and settling a job, over any protocol.


class Taken(NamedTuple):
    """A leased job."""

    ident: str  #: the job's ID in this protocol
    queue: str
    kind: str
    payload: bytes


#: For protocols whose leases do not end with the connection.
LEFT: Final = "it returns to its queue when its lease expires"


class Worker(Protocol):
    left: str  #: what happens to a job that is not settled before `close`

    def take(self, queues: list[str], wait_s: float) -> Taken | None:
        """Lease a job of these queues; None: no job within that time. Raises ClientError."""

    def done(self, job: Taken) -> None:
        """Raises ClientError, also if the lease has expired."""

    def failed(self, job: Taken, message: str) -> None:
        """Raises ClientError, also if the lease has expired."""

    def close(self) -> None: ...
