"""The path of the admin socket: `admin.sock` in the data folder, whose path may be of any length."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SOCKET: Final = "admin.sock"

#: The kernel's limit for the path of a socket.
PATH_BYTES: Final = 107


@contextmanager
def reachable(folder: Path) -> Iterator[str]:
    """A path of the socket that the kernel accepts. A long one goes through a descriptor of the folder."""
    path = folder / SOCKET
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
