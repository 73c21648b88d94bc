"""Listening sockets: bind them, remove stale ones, detect dead peers."""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.auth.tls import HANDSHAKE_S
from crossdock.protocols.admin.socket_path import SOCKET, reachable
from crossdock.server.connection import Connection
from crossdock.server.endpoints import CannotStart
from crossdock.settings.address import Address

#: Creates the connection of an accepted socket
Serve = Callable[[], Connection]

_BACKLOG: Final = 1_024


async def bind(
    loop: asyncio.AbstractEventLoop, protocol: str, where: Address, serve: Serve, tls: ssl.SSLContext | None = None
) -> asyncio.Server:
    """Bind the address. Clients cannot connect before `listen`. Raises CannotStart."""
    try:
        if where.path:
            _remove_stale(Path(where.path))
            server = await loop.create_unix_server(serve, where.path, backlog=_BACKLOG, start_serving=False)
            os.chmod(where.path, 0o600)
        else:
            server = await loop.create_server(
                serve,
                where.host,
                where.port,
                backlog=_BACKLOG,
                start_serving=False,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else HANDSHAKE_S,
                ssl_shutdown_timeout=None if tls is None else HANDSHAKE_S,
            )
            for sock in server.sockets:
                _detect_dead_peers(sock)
    except OSError as error:
        raise _cannot_open(protocol, where, error) from error
    return server


def bind_http(where: Address) -> socket.socket:
    """Bind the HTTP address, for another process. Clients cannot connect before `listen`. Raises CannotStart."""
    sock = socket.socket(
        socket.AF_UNIX if where.path else socket.AF_INET6 if ":" in where.host else socket.AF_INET, socket.SOCK_STREAM
    )
    try:
        if where.path:
            _remove_stale(Path(where.path))
            sock.bind(where.path)
            os.chmod(where.path, 0o600)
        else:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((where.host, where.port))
            _detect_dead_peers(sock)
    except OSError as error:
        sock.close()
        raise _cannot_open("http", where, error) from error
    return sock


async def listen(server: asyncio.Server, protocol: str, where: Address) -> None:
    """Accept connections. Raises CannotStart if another process has begun to listen there since `bind`."""
    try:
        await server.start_serving()
    except OSError as error:
        raise _cannot_open(protocol, where, error) from error


def _cannot_open(protocol: str, where: Address, error: OSError) -> CannotStart:
    # The event loop's own message is not used: it contains a tuple. A failed name lookup has an errno below 0.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or error
    cure = "stop the server that uses it, or " if number == errno.EADDRINUSE else ""
    return CannotStart(
        f"listen.{protocol} = {where} cannot be opened: {why}; {cure}choose another address: "
        f"--listen {protocol}=HOST:PORT, or listen.{protocol} in the settings"
    )


async def bind_admin(loop: asyncio.AbstractEventLoop, folder: Path, serve: Serve) -> asyncio.Server:
    """Bind the admin socket. It is always open; no setting turns it off. Raises CannotStart."""
    try:
        sock = _bind_admin_socket(folder)
    except OSError as error:
        raise CannotStart(
            f"{folder / SOCKET} cannot be opened: {error.strerror or error}; remove the file that is there, "
            "or put the data folder on a file system that supports sockets"
        ) from error
    return await loop.create_unix_server(serve, sock=sock, backlog=64, start_serving=False)


def _remove_stale(path: Path) -> None:
    """Remove the socket of a server that was killed. A running server answers. Other kinds of files are kept."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def _detect_dead_peers(sock: socket.socket) -> None:
    """Detect a vanished peer within a minute. Accepted sockets inherit the options."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


def _bind_admin_socket(folder: Path) -> socket.socket:
    """Bind a socket that only its owner may connect to. The caller holds the lock of the data directory. Raises OSError
    with the path."""
    remove_admin_socket(folder)
    sock = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(sock.fileno(), 0o600)  # before it has a name, so that it is never open to other users
        with reachable(folder) as name:
            sock.bind(name)
    except OSError:
        sock.close()
        raise
    return sock


def remove_admin_socket(folder: Path) -> None:
    """Remove the admin socket. The caller holds the lock of the data directory, so the socket is its own or a stale
    one. Other kinds of files are kept."""
    path = folder / SOCKET
    if path.is_socket():
        path.unlink()
