"""Measures how a pipelining client delays others: a PUSH every 2 ms on one connection, alone and beside a connection
that sends small requests without a pause and reads all replies.

`python -m bench.flood` runs it with every protocol.
"""

import argparse
import select
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from bench.bad_input import watch, watch_beside
from bench.figures import median
from bench.machine import describe
from bench.process import ServerFailed
from bench.replies import Unexpected
from bench.rounds import tell
from bench.servers import Crossdock
from bench.table import ms, show
from bench.target import Target, connect

_READ: Final = 1024 * 1024

#: The request that is repeated, by protocol.
_REQUESTS: Final = {
    "faktory": b"QUEUE LATENCY\r\n",
    "redis": b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
    "masenko": b"PING\n",
    "workq": b"inspect server\r\n",
}


def _flood(target: Target, requests: bytes, over: Event) -> None:
    with suppress(OSError), connect(target) as peer:
        peer.setblocking(False)
        left = memoryview(requests)
        while not over.is_set():
            readable, writable, _ = select.select([peer], [peer], [], 0.1)
            if readable:
                peer.recv(_READ)
            if writable:
                left = left[peer.send(left[:_READ]) :] or memoryview(requests)


def _measure(protocol: str, folder: Path, seconds: float, runs: int) -> tuple[str, ...]:
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(Path(own), beside="" if protocol == "faktory" else protocol) as server,
        connect(server.target) as peer,
    ):
        target, kind = server.beside or server.target, (_flood, _REQUESTS[protocol] * 50_000)
        pairs = [(watch(peer, seconds), watch_beside(target, peer, kind, seconds)) for _ in range(runs)]
    before, after = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
    tell(f"{protocol}: p99 {ms(before.p99)} alone, {ms(after.p99)} beside")
    return protocol, *map(ms, (before.p50, before.p99, after.p50, after.p99, after.worst))


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.flood", description="Measure how a pipelining client delays others."
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="seconds per run [%(default)s]")
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs [%(default)s]")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for data, on a disk [%(default)s]"
    )
    found = parser.parse_args(words)
    try:
        describe(found.folder)
        rows = [_measure(protocol, found.folder, found.seconds, found.runs) for protocol in _REQUESTS]
    except (ServerFailed, Unexpected, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    show(
        f"A PUSH every 2 ms, alone and beside a pipeline; ms, medians of {found.runs} runs of {found.seconds:g} s",
        ("protocol", "p50 alone", "p99", "p50 beside", "p99", "worst"),
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
