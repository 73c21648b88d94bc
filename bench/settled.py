"""Waits for the snapshot that the server writes after a million events, so that it does not disturb a measurement."""

import re
import time
from typing import Final

from bench.process import ServerFailed
from bench.rounds import tell
from bench.servers import Crossdock

#: The length of the tail at which the server starts compaction.
TAIL_EVENTS: Final = 1_000_000
_PATIENCE_S: Final = 300.0
_FOLDED: Final = re.compile(r"folded|compaction failed")


def await_compaction(server: Crossdock, events: int) -> None:
    """Returns when the snapshot is installed, or at once if the events are too few for one."""
    if events < TAIL_EVENTS:
        return
    began = time.perf_counter()
    server.wait_until(lambda: _FOLDED.search(server.log()) is not None, "snapshot", _PATIENCE_S)
    if "compaction failed" in server.log():
        raise ServerFailed(server.log())
    tell(f"the snapshot was installed after {time.perf_counter() - began:.1f} s")
