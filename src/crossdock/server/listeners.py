"""The sockets that doors listen on: opened with clear words, a dead server's cleared away, a dead peer noticed."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from crossdock.protocols.admin.socket_path import SOCKET, reachable
from crossdock.server.connection import Connection
from crossdock.server.endpoints import CannotStart
from crossdock.settings.address import Address

#: Makes what serves a connection
Serve = Callable[[], Connection]

_BACKLOG: Final = 1_024


async def bind(loop: asyncio.AbstractEventLoop, door: str, where: Address, serve: Serve) -> asyncio.Server:
    """Take the address. Nobody can connect before `listen`. Raises CannotStart."""
    try:
        if where.path:
            _remove_dead(Path(where.path))
            server = await loop.create_unix_server(serve, where.path, backlog=_BACKLOG, start_serving=False)
            os.chmod(where.path, 0o600)
        else:
            server = await loop.create_server(serve, where.host, where.port, backlog=_BACKLOG, start_serving=False)
            for sock in server.sockets:
                _notice_dead_peers(sock)
    except OSError as error:
        raise _cannot_open(door, where, error) from error
    return server


async def listen(server: asyncio.Server, door: str, where: Address) -> None:
    """Raises CannotStart: another process may have begun to listen there since."""
    try:
        await server.start_serving()
    except OSError as error:
        raise _cannot_open(door, where, error) from error


def _cannot_open(door: str, where: Address, error: OSError) -> CannotStart:
    # The loop's own words have a tuple in them. A name that cannot be looked up has a number below 0.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or error
    cure = "stop the server that has it, or " if number == errno.EADDRINUSE else ""
    return CannotStart(
        f"listen.{door} = {where} cannot be opened: {why}; {cure}give this door another address: "
        f"--listen {door}=HOST:PORT, or listen.{door} in the settings"
    )


async def bind_admin(loop: asyncio.AbstractEventLoop, folder: Path, serve: Serve) -> asyncio.Server:
    """Always open: no setting closes the operator's own way in. Raises CannotStart."""
    try:
        sock = _bind_admin_socket(folder)
    except OSError as error:
        raise CannotStart(
            f"{folder / SOCKET} cannot be opened: {error.strerror or error}; remove what is there, "
            "or put the data folder on a file system that can hold a socket"
        ) from error
    return await loop.create_unix_server(serve, sock=sock, backlog=64, start_serving=False)


def _remove_dead(path: Path) -> None:
    """A server that was killed leaves its socket behind. A live one answers, and another kind of file is not ours."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()


def _notice_dead_peers(sock: socket.socket) -> None:
    """A peer that vanished is noticed within a minute. Accepted sockets inherit this."""
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


def _bind_admin_socket(folder: Path) -> socket.socket:
    """Only its owner may connect to it. The caller holds the folder's lock. Raises OSError with the path."""
    remove_admin_socket(folder)
    sock = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(sock.fileno(), 0o600)  # before it has a name: it is never open to others, not for a moment
        with reachable(folder) as name:
            sock.bind(name)
    except OSError:
        sock.close()
        raise
    return sock


def remove_admin_socket(folder: Path) -> None:
    """The folder's lock is ours, so a socket there is this server's or a dead one's; another kind of file is not."""
    path = folder / SOCKET
    if path.is_socket():
        path.unlink()
