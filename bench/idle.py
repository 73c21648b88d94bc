"""Measures the memory of idle connections."""

import resource
import socket
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.process import ServerFailed
from bench.servers import Crossdock
from bench.sizes import Sizes
from bench.table import Goal, show
from bench.target import connect, read_line

_MIB: Final = 1024 * 1024
_OTHER_FILES: Final = 100


def idle(sizes: Sizes, folder: Path) -> list[Goal]:
    _allow_files(sizes.idle + _OTHER_FILES)
    with ExitStack() as stack:
        own = stack.enter_context(tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder))
        server = stack.enter_context(Crossdock(Path(own)))
        before = server.rss()
        sockets = [stack.enter_context(connect(server.target)) for _ in range(sizes.idle)]
        sockets[0].sendall(b"INFO\r\n")
        size = int(read_line(sockets[0])[1:])
        info: dict[str, Any] = msgspec.json.decode(sockets[0].recv(size + 2, socket.MSG_WAITALL)[:-2])
        if info["server"]["connections"] != sizes.idle:
            raise ServerFailed(f"{sizes.idle:,} connections were opened, but the server says: {info['server']}")
        after = server.rss()
    show(
        "Idle connections, after HELLO",
        ("connections", "RSS before, MiB", "with them, MiB", "KiB a connection"),
        [
            (
                f"{sizes.idle:,}",
                f"{before / _MIB:.1f}",
                f"{after / _MIB:.1f}",
                f"{(after - before) / sizes.idle / 1024:.1f}",
            )
        ],
        text=0,
    )
    return [Goal(f"MiB with {sizes.idle:,} idle connections", after / _MIB, "most", 150.0, form="{:.0f}")]


def _allow_files(count: int) -> None:
    """Raise the limit of open files. A connection takes one descriptor here; the server raises its own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise ServerFailed(f"{count:,} file descriptors are needed, the limit is {hard:,}; raise it with ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
