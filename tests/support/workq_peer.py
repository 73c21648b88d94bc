"""A Workq client on a raw socket that sends exactly the bytes of the test."""

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
        """Send the lines, each ended by CR LF, in one packet."""
        self.socket.sendall(b"".join((line.encode() if isinstance(line, str) else line) + b"\r\n" for line in lines))

    def expect(self, *lines: str | bytes) -> None:
        """Check that the next lines are these."""
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
        """Wait until the server has closed the connection without sending more."""
        try:
            data = self.socket.recv(1)
        except ConnectionResetError:
            return True
        assert not data and not self._read, self._read + data
        return True

    def reset(self) -> None:
        """Close with a reset, as a killed process with unread data does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
