"""A Workq client on a raw socket: what it sends and what it gets is exactly what the test says."""

import socket
import struct
from types import TracebackType
from typing import Self

from tests.support.patience import PATIENCE_S


class WorkqPeer:
    def __init__(self, port: int, timeout: float = PATIENCE_S) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def send(self, *lines: str | bytes) -> None:
        """Each ended by CR LF, all in one packet."""
        self.socket.sendall(b"".join((line.encode() if isinstance(line, str) else line) + b"\r\n" for line in lines))

    def hear(self, *lines: str | bytes) -> None:
        """The next lines must be these."""
        for line in lines:
            said = self.line()
            assert said == (line.encode() if isinstance(line, str) else line), said

    def line(self) -> bytes:
        while b"\r\n" not in self._read:
            data = self.socket.recv(1 << 18)
            assert data, f"closed after {self._read!r}"
            self._read += data
        line, _, self._read = self._read.partition(b"\r\n")
        return line

    def ended(self) -> bool:
        """True once the server has closed without another word."""
        try:
            data = self.socket.recv(1)
        except ConnectionResetError:
            return True
        assert not data and not self._read, self._read + data
        return True

    def vanish(self) -> None:
        """With a reset, as a process that is killed with unread data leaves."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
