"""Measures the time to accept connections after SIGKILL, with many jobs and a long journal tail."""

import re
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.figures import PHASES
from bench.process import ServerFailed
from bench.rounds import tell
from bench.servers import Crossdock
from bench.settled import await_compaction
from bench.sizes import Sizes
from bench.table import Goal, show

_RECOVERED: Final = re.compile(r"^recovered\s+([\d,]+)", re.MULTILINE)


def restart(sizes: Sizes, folder: Path) -> list[Goal]:
    with tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own:
        _prepare(sizes, Path(own))
        with Crossdock(Path(own)) as server:
            seconds = time.perf_counter() - server.started
            worked, rss = server.cpu_seconds(), server.rss()
            recovered = _RECOVERED.search(server.said())
            if recovered is None or int(recovered[1].replace(",", "")) != sizes.many:
                raise ServerFailed(f"{sizes.many:,} jobs were queued, but the server says: {server.said()}")
    show(
        "Restart after SIGKILL, from the start of the process to the first answer to HELLO",
        ("jobs", "events in the tail", "seconds", "CPU seconds", "RSS, MiB"),
        [
            (
                f"{sizes.many:,}",
                f"{_cycles(sizes) * len(PHASES):,}",
                f"{seconds:.2f}",
                f"{worked:.2f}",
                f"{rss / 1024 / 1024:.0f}",
            )
        ],
        text=0,
    )
    return [Goal("seconds to accept after SIGKILL", seconds, "most", 10.0)]


def _cycles(sizes: Sizes) -> int:
    """Number of whole jobs that make up the tail: one event per phase, rounded up."""
    return -(-sizes.many // len(PHASES))


def _prepare(sizes: Sizes, folder: Path) -> None:
    """Write jobs into a snapshot and whole jobs into the tail after it. The kill comes before the next snapshot."""
    with Crossdock(folder) as server, Driver(server.target, sizes.connections[0]) as load:
        load.step("push", sizes.many)
        await_compaction(server, sizes.many)
        load.step("phases", _cycles(sizes))
        server.kill()
    tell("the server was killed")
