"""Measures how one large operation delays others: a PUSH every 2 ms on one connection, while another connection settles
a job with very many dependents, or changes very many jobs in another way.

`python -m bench.stalls` runs it. Each case has its own server. The other connection prepares the jobs first, waits
until the first connection has measured for a while, and then sends one request.
"""

import argparse
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeVar

import msgspec

from bench.figures import Figures, figures
from bench.machine import describe
from bench.process import ServerFailed
from bench.protocols.endpoint import command
from bench.replies import Unexpected
from bench.rounds import tell
from bench.servers import Crossdock
from bench.table import Goal, ms, show, show_goals
from bench.target import Target, connect, read_line

T = TypeVar("T")

_MOST_S: Final = 0.050  #: p99 of the other client
_EVERY_S: Final = 0.002
_BEFORE_S: Final = 0.3  #: measured before the request is sent
_A_TIME: Final = 1_000  #: requests sent before their replies are read


def _batched(many: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(many)
    while some := list(islice(rest, _A_TIME)):
        yield some


class Peer:
    """A connection that sends a request and reads the reply, or sends many requests and reads one line for each."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket = connect(target)
        self._socket.settimeout(None)
        self._file: BinaryIO = self._socket.makefile("rb")

    def another(self) -> socket.socket:
        """A second connection, with a very small receive buffer."""
        sock = connect(self._target)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        return sock

    def ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        line = self._file.readline()
        if line.startswith(b"$") and line != b"$-1\r\n":
            return self._file.read(int(line[1:]) + 2)[:-2]
        if line.startswith(b"*"):
            return b" ".join(self._file.read(int(self._file.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:])))
        if line.startswith((b"-", b"ERROR")):
            raise Unexpected(f"{request[:80]!r}: {line!r}")
        return line.rstrip()

    def ask_all(self, requests: Iterator[bytes], *, lines: int = 1) -> None:
        """Reads `lines` lines of each reply and checks them for errors only."""
        for some in _batched(requests):
            self._socket.sendall(b"".join(some))
            for _ in range(len(some) * lines):
                line = self._file.readline()
                if line.startswith((b"-", b"ERROR")) or not line:
                    raise Unexpected(f"{some[0][:80]!r}: {line!r}")


def _qless(*words: object) -> bytes:
    return command(b"FCALL", b"qless", b"0", *(str(word).encode() for word in words))


def _masenko_id(reply: bytes) -> int:
    found: int = msgspec.json.decode(reply.removeprefix(b"OK "))["id"]
    return found


def _wide(peer: Peer, many: int, tail: bytes = b"") -> int:
    """Fetch a task that has `many` dependents."""
    dependency = _masenko_id(peer.ask(b'PUSH {"queue":"need","name":"n","retry":0}\n'))
    one = b'PUSH {"queue":"wide","name":"n","blocked_by":[%d]%b}\n' % (dependency, tail)
    peer.ask_all(one for _ in range(many))
    peer.ask(b'FETCH {"queues":["need"],"timeout":"5s"}\n')
    return dependency


def _freed(peer: Peer, many: int) -> bytes:
    return b'ACK {"id":%d}\n' % _wide(peer, many)


def _lost(peer: Peer, many: int) -> bytes:
    return b'NACK {"id":%d}\n' % _wide(peer, many)


def _dead_queue(peer: Peer, many: int) -> bytes:
    return b'NACK {"id":%d}\n' % _wide(peer, many, b',"deadqueue":"dead"')


def _chain(peer: Peer, many: int) -> bytes:
    """A chain: each task depends on the one before it."""
    dependency = _masenko_id(peer.ask(b'PUSH {"queue":"need","name":"n","retry":0}\n'))
    peer.ask_all(b'PUSH {"queue":"chain","name":"n","blocked_by":[%d]}\n' % (dependency + n) for n in range(many))
    peer.ask(b'FETCH {"queues":["need"],"timeout":"5s"}\n')
    return b'NACK {"id":%d}\n' % dependency


def _two_needs(peer: Peer, many: int) -> bytes:
    """Each depends on a second task, too, so none becomes ready."""
    dependency = _masenko_id(peer.ask(b'PUSH {"queue":"need","name":"n","retry":0}\n'))
    other = _masenko_id(peer.ask(b'PUSH {"queue":"other","name":"n"}\n'))
    one = b'PUSH {"queue":"wide","name":"n","blocked_by":[%d,%d]}\n' % (dependency, other)
    peer.ask_all(one for _ in range(many))
    peer.ask(b'FETCH {"queues":["need"],"timeout":"5s"}\n')
    return b'ACK {"id":%d}\n' % dependency


def _qless_wide(peer: Peer, many: int) -> None:
    peer.ask(_qless("put", 1, "w", "need", "need", "k", "{}", 0))
    puts = (_qless("put", 1, "w", "wide", f"j{n}", "k", "{}", 0, "depends", '["need"]') for n in range(many))
    peer.ask_all(puts, lines=2)


def _qless_freed(peer: Peer, many: int) -> bytes:
    _qless_wide(peer, many)
    peer.ask(_qless("pop", 2, "need", "w", 1))
    return _qless("complete", 3, "need", "w", "need", "{}")


def _qless_failed(peer: Peer, many: int) -> bytes:
    """A failed job is kept, and its dependents keep waiting."""
    _qless_wide(peer, many)
    peer.ask(_qless("pop", 2, "need", "w", 1))
    return _qless("fail", 3, "need", "w", "group", "message")


def _qless_canceled(peer: Peer, many: int) -> bytes:
    """The most jobs that one call may name."""
    many = min(many, 24_000)
    _qless_wide(peer, many)
    return _qless("cancel", 3, "need", *(f"j{n}" for n in range(many)))


def _keys(peer: Peer, many: int) -> bytes:
    """List all names in one call, with five times as many keys as other cases have jobs."""
    peer.ask_all(command(b"SET", b"key:%09d" % n, b"v") for n in range(5 * many))
    return command(b"KEYS", b"*")


def _unread(peer: Peer, many: int) -> Callable[[], None]:
    """60 clients request 60 MB each and never read. Their connections stay open."""
    for _ in range(4):
        peer.ask(command(b"RPUSH", b"list", *[b"x" * 1_000] * 15_000))
    silent = [peer.another() for _ in range(60)]

    def ask() -> None:
        for one in silent:
            one.sendall(command(b"LRANGE", b"list", b"0", b"-1"))

    return ask


def _flush(peer: Peer, many: int) -> bytes:
    _faktory_jobs(peer, many)
    return b"FLUSH\r\n"


def _due(peer: Peer, many: int) -> bytes:
    """The jobs become due by themselves during the measurement."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + max(6, many / 10_000)))
    _faktory_jobs(peer, many, b',"at":"%b"' % at.encode())
    return b"INFO\r\n"


def _faktory_jobs(peer: Peer, many: int, tail: bytes = b"") -> None:
    for some in _batched(range(many)):
        jobs = b",".join(b'{"jid":"job-%09d","jobtype":"T","args":[]%b}' % (n, tail) for n in some)
        peer.ask(b"PUSHB [%b]\r\n" % jobs)


def _group(peer: Peer, many: int) -> bytes:
    """The last job of a batch succeeds, and its callback follows."""
    bid = peer.ask(b'BATCH NEW {"success":{"jid":"callback-1","jobtype":"C","args":[],"queue":"calls"}}\r\n')
    _faktory_jobs(peer, many, b',"custom":{"bid":"%b"}' % bid)
    peer.ask(b"BATCH COMMIT %b\r\n" % bid)
    for _ in range(many - 1):
        peer.ask(b"FETCH default\r\n")
    peer.ask_all(b'ACK {"jid":"job-%09d"}\r\n' % n for n in range(many - 1))
    peer.ask(b"FETCH default\r\n")
    return b'ACK {"jid":"job-%09d"}\r\n' % (many - 1)


def watch(peer: socket.socket, seconds: float) -> Figures:
    """The time that each PUSH waits for its reply. After a long wait, it adds the waits of the requests that would have
    been sent every 2 ms meanwhile. Otherwise the longest wait would count only once."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end:
        peer.sendall(b'PUSH {"jid":"%b","jobtype":"T","args":[]}\r\n' % os.urandom(8).hex().encode())
        if read_line(peer) != b"+OK":
            raise Unexpected("a PUSH was not taken")
        waited = time.perf_counter() - began
        while waited > 0:
            took.append(waited)
            waited -= _EVERY_S
        time.sleep(_EVERY_S)
    return figures(len(took), seconds, took)


class Case(NamedTuple):
    protocol: str
    prepare: Callable[[Peer, int], bytes | Callable[[], None]]  #: the request to send, or a function that sends it


_CASES: Final = {
    "Masenko ACK, dependents": Case("masenko", _freed),
    "Masenko ACK, dependents that need more": Case("masenko", _two_needs),
    "Masenko NACK, dependents": Case("masenko", _lost),
    "Masenko NACK, dependents with a dead queue": Case("masenko", _dead_queue),
    "Masenko NACK, a chain": Case("masenko", _chain),
    "qless complete, dependents": Case("qless", _qless_freed),
    "qless fail, dependents": Case("qless", _qless_failed),
    "qless cancel with dependents": Case("qless", _qless_canceled),
    "Redis KEYS over five times as many": Case("redis", _keys),
    "60 clients that never read 60 MB": Case("redis", _unread),
    "Faktory FLUSH": Case("faktory", _flush),
    "Faktory jobs due at one second": Case("faktory", _due),
    "Faktory batch, the last job": Case("faktory", _group),
}


def _other(target: Target, name: str, many: int, mine: Connection) -> None:
    """Runs in its own process, so that its work does not slow down the first connection."""
    peer = Peer(target)
    last = _CASES[name].prepare(peer, many)
    mine.send(0.0)
    mine.recv()
    began = time.perf_counter()
    last() if callable(last) else peer.ask(last)
    mine.send(time.perf_counter() - began)
    mine.recv()  # connections stay open until the end of the measurement


def _measure(name: str, many: int, folder: Path, seconds: float) -> tuple[tuple[str, ...], float]:
    protocol = _CASES[name].protocol
    opened = "redis" if protocol == "qless" else protocol
    with (
        tempfile.TemporaryDirectory(prefix="crossdock-bench-", dir=folder) as own,
        Crossdock(
            Path(own), settings={"redis.keys_mib": "1024"}, beside="" if protocol == "faktory" else opened
        ) as server,
        connect(server.target) as peer,
    ):
        theirs, mine = multiprocessing.Pipe()
        other = multiprocessing.Process(target=_other, args=(server.beside or server.target, name, many, mine))
        other.start()
        mine.close()  # so that the end of the process is noticed
        theirs.recv()
        alone = watch(peer, _BEFORE_S)
        theirs.send(None)
        beside = watch(peer, seconds)
        took = theirs.recv()
        theirs.send(None)
        other.join()
    tell(f"{name}: worst {ms(beside.worst)}, p99 {ms(beside.p99)}")
    row = (name, ms(took), *map(ms, (alone.p99, beside.p50, beside.p99, beside.worst)))
    return row, beside.p99


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.stalls", description="Measure how one large operation delays another client."
    )
    parser.add_argument("--many", type=int, default=100_000, help="number of affected jobs [%(default)s]")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="seconds to measure after the operation [%(default)s]"
    )
    parser.add_argument("--only", nargs="+", metavar="CASE", help="run only cases whose names contain one of these")
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="folder for data, on a disk [%(default)s]"
    )
    found = parser.parse_args(words)
    names = [name for name in _CASES if not found.only or any(part in name for part in found.only)]
    if not names:
        parser.error(f"no such case; there are: {', '.join(_CASES)}")
    try:
        describe(found.folder)
        measured = [_measure(name, found.many, found.folder, found.seconds) for name in names]
    except (ServerFailed, Unexpected, OSError, EOFError) as error:
        print(f"bench: {error!r}", file=sys.stderr)
        return 1
    show(
        f"A PUSH every 2 ms beside one step over {found.many:,} jobs; ms, over {found.seconds:g} s from its request on",
        ("step", "its own reply", "p99 before", "p50", "p99", "worst"),
        [row for row, _ in measured],
    )
    goals = [Goal(f"p99 in ms, {row[0]}", p99 * 1e3, "most", _MOST_S * 1e3) for row, p99 in measured]
    show_goals(goals)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
