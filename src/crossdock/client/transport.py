"""Connections of the blocking client: TCP, TLS and UNIX sockets behind one small interface."""

import os
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from crossdock.client.address import Address
from crossdock.client.errors import NoServer

if TYPE_CHECKING:
    import ssl

_CHUNK: Final = 64 * 1024

#: Elsewhere the options have other forms.
_KERNEL_TIMEOUTS: Final = sys.platform in ("linux", "darwin") and struct.calcsize("l") == 8


class Transport(Protocol):
    """A connection. Its methods raise OSError; TimeoutError and BlockingIOError mean that the time is over."""

    @property
    def send(self) -> Callable[[bytes], Any]:
        """Sends all of it."""

    @property
    def receive(self) -> Callable[[], bytes]:
        """Returns some bytes, as soon as there are any. b"": the server has closed the connection."""

    def settimeout(self, seconds: float, /) -> None:
        """The time that each later `send` and `receive` may take."""

    def close(self) -> None:
        """Close the connection. A `receive` in another thread returns or raises."""


class Connect(Protocol):
    """Opens a connection. Raises NoServer."""

    def __call__(self, address: Address, timeout_s: float, /) -> Transport: ...


class SocketTransport:
    """A socket, or a TLS socket.

    The kernel measures the time of `recv` and `send` where it can, because Python's own timeout makes two system calls
    of each.
    """

    __slots__ = ("_kernel", "_pid", "_socket", "receive", "send")

    def __init__(self, sock: socket.socket, timeout_s: float, *, tls: bool = False) -> None:
        self._socket = sock
        self._pid = os.getpid()
        self._kernel = _KERNEL_TIMEOUTS and not tls  # TLS needs the error that Python's timeout makes
        if self._kernel:
            sock.settimeout(None)
        self.settimeout(timeout_s)
        self.send: Callable[[bytes], Any] = sock.sendall
        receive = sock.recv
        self.receive: Callable[[], bytes] = lambda: receive(_CHUNK)

    def settimeout(self, seconds: float, /) -> None:
        if not self._kernel:
            self._socket.settimeout(seconds)
            return
        whole, fraction = divmod(max(seconds, 0.001), 1)
        time = struct.pack("ll", int(whole), int(fraction * 1_000_000))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time)

    def close(self) -> None:
        """The child process after a fork only closes its copy: the connection belongs to the parent."""
        if os.getpid() == self._pid:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes another thread that waits; close alone does not
        self._socket.close()


def tls_context(address: Address) -> "ssl.SSLContext":
    """Raises NoServer if the file of the authority cannot be read."""
    import ssl

    try:
        return ssl.create_default_context(cafile=address.ca or None)
    except OSError as error:
        raise NoServer(
            f"cannot connect to {address}: the certificates in {address.ca} cannot be read: {reason(error)}"
        ) from error


def unreachable(address: Address, error: OSError) -> NoServer:
    return NoServer(f"no server answers at {address}: {reason(error)}")


def no_unix_sockets(address: Address) -> NoServer:
    return NoServer(f"cannot connect to {address}: this system has no UNIX sockets; use crossdock://HOST:PORT")


def reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def connect(address: Address, timeout_s: float, *, context: "ssl.SSLContext | None" = None) -> Transport:
    """Open a connection. Raises NoServer."""
    if address.path and not hasattr(socket, "AF_UNIX"):
        raise no_unix_sockets(address)
    if address.tls and context is None:
        context = tls_context(address)
    sock = None
    try:
        if address.path:
            sock = socket.socket(socket.AF_UNIX)
            sock.settimeout(timeout_s)
            sock.connect(address.path)
            return SocketTransport(sock, timeout_s)
        sock = socket.create_connection((address.host, address.port), timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if context is None:
            return SocketTransport(sock, timeout_s)
        sock = context.wrap_socket(sock, server_hostname=address.host)
        return SocketTransport(sock, timeout_s, tls=True)
    except OSError as error:  # also a TLS handshake that failed
        if sock is not None:
            sock.close()
        raise unreachable(address, error) from error
    except BaseException:
        if sock is not None:
            sock.close()
        raise
