"""Measures the memory of a queued job without its args and custom."""

import tempfile
from pathlib import Path
from typing import Final

from bench.driver import Driver
from bench.faktory import PAYLOAD_BYTES
from bench.servers import Crossdock
from bench.sizes import Sizes
from bench.table import Goal, show

_MIB: Final = 1024 * 1024


def memory(sizes: Sizes, folder: Path) -> list[Goal]:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own)) as server,
        Driver(server.target, sizes.connections[0]) as load,
    ):
        before = server.rss()
        pushed = load.step("push", sizes.many)["PUSH"]
        after = server.rss()
    beyond = (after - before) / sizes.many - PAYLOAD_BYTES
    show(
        f"Memory over {sizes.many:,} PUSHes on {sizes.connections[0]} connections",
        ("RSS before, MiB", "after, MiB", "bytes a job", "of them args and custom", "PUSH/s"),
        [
            (
                f"{before / _MIB:.1f}",
                f"{after / _MIB:.1f}",
                f"{(after - before) / sizes.many:.0f}",
                str(PAYLOAD_BYTES),
                f"{pushed.rate:,.0f}",
            )
        ],
        text=0,
    )
    return [Goal("bytes a queued job beyond args and custom", beyond, "most", 700.0, form="{:.0f}")]
