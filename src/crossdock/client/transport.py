"""Connections of the blocking client: TCP, TLS and UNIX sockets behind one small interface."""

import ssl
from typing import Final, Protocol

from crossdock.client.address import Address

_CHUNK: Final = 64 * 1024


class Transport(Protocol):
    """A connection. Its methods raise OSError; TimeoutError and BlockingIOError mean that the time is over."""

    def send(self, data: bytes, /) -> None:
        """Send all of it."""

    def receive(self) -> bytes:
        """Some bytes, as soon as there are any. b"": the server has closed the connection."""

    def settimeout(self, seconds: float, /) -> None:
        """The time that each later `send` and `receive` may take."""

    def close(self) -> None:
        """Close the connection. A `receive` in another thread returns or raises."""


class Connect(Protocol):
    def __call__(self, address: Address, timeout_s: float, /) -> Transport: ...


def connect(address: Address, timeout_s: float, *, context: ssl.SSLContext | None = None) -> Transport:
    """Open a connection. Raises NoServer."""
    raise NotImplementedError
