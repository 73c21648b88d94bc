"""Where the control socket is: `control.sock` in the data folder, however long the folder's path may be."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SOCKET: Final = "control.sock"

#: The kernel takes no longer path for a socket.
PATH_BYTES: Final = 107


@contextmanager
def reachable(folder: Path) -> Iterator[str]:
    """The socket's path as the kernel takes it: a long one is told through a descriptor of its folder."""
    path = folder / SOCKET
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
