"""Measures how bad input delays other clients: a PUSH every 2 ms, alone and beside a client that repeats bad input.

`python -m bench.bad_input [--protocol redis]` runs it. Both cases are measured alternately, and the result is the ratio
of their p99.
"""

import argparse
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

from bench.bad_lines import FAKTORY, OTHERS
from bench.figures import Figures, figures, median
from bench.machine import describe
from bench.process import ServerFailed
from bench.replies import Unexpected
from bench.rounds import tell
from bench.servers import Crossdock
from bench.table import Goal, ms, show, show_goals
from bench.target import Target, connect, read_line

_PAUSE_S: Final = 0.002
_SLOWER: Final = 2.0
_LOOK_S: Final = 0.2  #: interval to check whether the run is over


def _repeat(target: Target, bad: bytes, over: Event) -> None:
    """Repeat the request as fast as it is answered. Reconnect if the server closes the connection."""
    while not over.is_set():
        with suppress(OSError), connect(target) as peer:
            peer.settimeout(_LOOK_S)
            while _send(peer, bad, over) and _hear(peer, over):
                pass


def _reconnect(target: Target, bad: bytes, over: Event) -> None:
    """Repeat the request as fast as it is answered, over a new connection each time."""
    while not over.is_set():
        with suppress(OSError), connect(target) as peer:
            peer.settimeout(_LOOK_S)
            if _send(peer, bad, over):
                _hear(peer, over)


def _never_read(target: Target, bad: bytes, over: Event) -> None:
    while not over.is_set():
        with suppress(OSError), connect(target) as peer:
            peer.settimeout(_LOOK_S)
            while _send(peer, bad, over):
                pass


def _leave(target: Target, bad: bytes, over: Event) -> None:
    """Close the connection in the middle of a request."""
    while not over.is_set():
        with suppress(OSError), connect(target) as peer:
            peer.settimeout(_LOOK_S)
            _send(peer, bad, over)


def _knock(target: Target, bad: bytes, over: Event) -> None:
    """Connect and send a wrong password."""
    while not over.is_set():
        with suppress(OSError), socket.create_connection((target.host, target.port)) as peer:
            peer.settimeout(_LOOK_S)
            if _hear(peer, over) and _send(peer, bad, over):
                _hear(peer, over)


def _send(peer: socket.socket, data: bytes, over: Event) -> bool:
    left = memoryview(data)
    while left and not over.is_set():
        with suppress(TimeoutError):
            left = left[peer.send(left) :]
    return not left


def _hear(peer: socket.socket, over: Event) -> bool:
    """False: the run is over, or the peer has closed."""
    while not over.is_set():
        with suppress(TimeoutError):
            return bool(peer.recv(65_536))
    return False


Way = Callable[[Target, bytes, Event], None]

_BAD: Final[dict[str, tuple[Way, bytes]]] = {
    **{name: (_repeat, line) for name, line in FAKTORY.items()},
    **{
        f"{name}, new connections": (_reconnect, FAKTORY[name])
        for name in ("PUSH of 300 KB", "PUSH of lists", "PUSHB with a wrong end")
    },
    "wrong passwords": (_knock, b'HELLO {"v":2,"pwdhash":"%b"}\r\n' % (b"0" * 64)),
    "half a line": (_leave, b'PUSH {"jid":"12345678","jobtype":"T","args":["' + b"a" * 1_000_000),
    "who never reads": (_never_read, b"INFO\r\n" * 1_000),
}

#: By protocol.
_KINDS: Final[dict[str, dict[str, tuple[Way, bytes]]]] = {
    "faktory": _BAD,
    **{protocol: {name: (_repeat, line) for name, line in lines.items()} for protocol, lines in OTHERS.items()},
}


def watch(peer: socket.socket, seconds: float) -> Figures:
    """The time that each PUSH waits for its reply."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        peer.sendall(b'PUSH {"jid":"%b","jobtype":"T","args":[]}\r\n' % os.urandom(8).hex().encode())
        if read_line(peer) != b"+OK":
            raise Unexpected("a PUSH was not taken")
        took.append(time.perf_counter() - began)
        time.sleep(_PAUSE_S)
    return figures(len(took), seconds, took)


def watch_beside(target: Target, peer: socket.socket, kind: tuple[Way, bytes], seconds: float) -> Figures:
    way, bad = kind
    over = multiprocessing.Event()
    other = multiprocessing.Process(target=way, args=(target, bad, over))
    other.start()
    try:
        return watch(peer, seconds)
    finally:
        over.set()
        other.join()


def bad_input(folder: Path, seconds: float, runs: int, protocol: str, names: Sequence[str]) -> list[Goal]:
    rows: list[tuple[str, ...]] = []
    goals: list[Goal] = []
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(
            Path(own), settings={"faktory.password": "secret"}, beside="" if protocol == "faktory" else protocol
        ) as server,
        connect(server.target) as peer,
    ):
        target, kinds = server.beside or server.target, _KINDS[protocol]
        for name in names:
            pairs = [(watch(peer, seconds), watch_beside(target, peer, kinds[name], seconds)) for _ in range(runs)]
            alone, beside = median([pair[0] for pair in pairs]), median([pair[1] for pair in pairs])
            ratio = statistics.median(after.p99 / before.p99 for before, after in pairs)
            times = (alone.p50, alone.p99, alone.worst, beside.p50, beside.p99, beside.worst)
            rows.append((name, *map(ms, times), f"{ratio:.2f}"))
            goals.append(Goal(f"p99 beside {name} / alone", ratio, "most", _SLOWER))
            tell(f"{name}: {ratio:.2f}")
    show(
        f"A PUSH every {ms(_PAUSE_S)} ms, alone and beside bad input; ms, medians of {runs} runs of {seconds:g} s",
        ("beside", "p50 alone", "p99", "worst", "p50 beside", "p99", "worst", "p99 ratio"),
        rows,
    )
    return goals


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.bad_input", description="Measure how bad input delays other clients."
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds per run [%(default)s]")
    parser.add_argument(
        "--runs", type=int, default=5, help="pairs of runs; the result is the median ratio [%(default)s]"
    )
    parser.add_argument("--protocol", choices=_KINDS, default="faktory", help="protocol of the bad input [%(default)s]")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="run only these cases")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for data, on a disk [%(default)s]"
    )
    found = parser.parse_args(words)
    names = found.only or list(_KINDS[found.protocol])
    unknown = set(names) - set(_KINDS[found.protocol])
    if unknown:
        parser.error(f"no such kind: {', '.join(unknown)}; there are: {', '.join(_KINDS[found.protocol])}")
    try:
        describe(found.folder)
        show_goals(bad_input(found.folder, found.seconds, found.runs, found.protocol, names))
    except (ServerFailed, Unexpected, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
