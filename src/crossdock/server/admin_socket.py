"""The control door's socket: made for its owner alone, and gone with the server."""

import os
import socket
from pathlib import Path

from crossdock.protocols.admin.socket_path import SOCKET, reachable


def bind(folder: Path) -> socket.socket:
    """Whoever calls holds the folder's lock. Raises OSError with the path."""
    remove(folder)
    sock = socket.socket(socket.AF_UNIX)
    try:
        os.fchmod(sock.fileno(), 0o600)  # before it has a name: it is never open to others, not for a moment
        with reachable(folder) as name:
            sock.bind(name)
    except OSError:
        sock.close()
        raise
    return sock


def remove(folder: Path) -> None:
    """The folder's lock is ours, so a socket there is this server's or a dead one's; another kind of file is not."""
    path = folder / SOCKET
    if path.is_socket():
        path.unlink()
