"""Trace the walk of a request through the source: how many calls, in how many files, and how often the file changes.

    python -m tools.walks [--tree DIR] [--calls WALK]

A newcomer who follows a request in an editor makes the same walk. Each walk drives the real connection, session, engine
and encoding through `bench.steps`, which replaces sockets and disk. `--tree` traces another checkout: it is imported by
the names that its own `bench.steps` has.

A call is a call of a Python function under `src/crossdock`; comprehensions and generator expressions are not counted. A
hop is a call of a function in another file than the function that was called before it.
"""

import argparse
import asyncio
import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

_TREE: Final = Path(__file__).parents[1]
_MARK: Final = "/src/crossdock/"
#: Passes of the event loop that a request needs until its reply is written.
_PASSES: Final = 10
_INNER: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


class Call(NamedTuple):
    file: str
    function: str


class Walk(NamedTuple):
    name: str
    calls: list[Call]

    @property
    def files(self) -> int:
        return len({call.file for call in self.calls})

    @property
    def hops(self) -> int:
        return sum(before.file != after.file for before, after in zip(self.calls, self.calls[1:], strict=False))


@contextmanager
def traced() -> Iterator[list[Call]]:
    """Collect the calls that are made inside."""
    calls: list[Call] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            _, ours, file = code.co_filename.rpartition(_MARK)
            if ours and code.co_name not in _INNER:
                calls.append(Call(file, code.co_name))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def _module(name: str) -> Any:
    """A module of the traced tree, imported by name."""
    return importlib.import_module(name)


class Peer:
    """A connection to the server. Its transport keeps the written bytes."""

    def __init__(self, connection: Any, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._transport = transport
        self._loop = loop
        connection.connection_made(transport)

    def ask(self, request: bytes) -> list[bytes]:
        """The replies, once the group commit is over."""
        self._transport.written.clear()
        self._connection.data_received(request)
        for _ in range(_PASSES):
            self._loop.run_until_complete(_nothing())
        return list(self._transport.written)

    def walk(self, name: str, request: bytes) -> Walk:
        with traced() as calls:
            self.ask(request)
        return Walk(name, calls)


async def _nothing() -> None:
    """One pass of the event loop."""


class Server:
    """An engine with its group commit, and connections of one protocol, built as `bench.steps` builds them."""

    def __init__(self, protocol: str) -> None:
        self._steps = _module("bench.steps")
        self._make = self._steps.Connection
        self._append = self._steps._Scribe.append
        self._arguments: tuple[Any, ...] = ()
        self.entries: list[bytes] = []  #: entries written to the journal
        self._steps.Connection = self._remember
        self._steps._Scribe.append = self._keep
        try:
            self._bench = self._steps.Bench(protocol)
        finally:
            self._steps.Connection = self._make

    def _remember(self, *arguments: Any) -> Any:
        self._arguments = arguments
        return self._make(*arguments)

    def _keep(self, entry: bytes, durable: Callable[[], None]) -> None:
        """In place of the journal's writer: an entry is durable at once."""
        self.entries.append(entry)
        durable()

    def connect(self, hello: bytes = b"") -> Peer:
        peer = Peer(self._make(*self._arguments), self._steps._Transport(), self._bench._loop)
        if hello:
            peer.ask(hello)
        return peer

    def close(self) -> None:
        self._steps._Scribe.append = self._append
        self._bench.close()


@contextmanager
def server(protocol: str) -> Iterator[Server]:
    made = Server(protocol)
    try:
        yield made
    finally:
        made.close()


_HELLO: Final = b'HELLO {"v":2,"wid":"%s"}\r\n'
_PUSH: Final = b'PUSH {"jid":"%032d","jobtype":"sum","args":[1,2],"queue":"default"}\r\n'
_FETCH: Final = b"FETCH default\r\n"
_FAIL: Final = b'FAIL {"jid":"%032d","errtype":"Oops","message":"no","backtrace":["line 1"]}\r\n'


def faktory() -> Iterator[Walk]:
    """Each request is made once before it is traced, so that queues are known and caches are filled."""
    with server("faktory") as made:
        peer, blocked = made.connect(_HELLO % b"one"), made.connect(_HELLO % b"two")
        for request in (_PUSH % 1, _FETCH, _FAIL % 1):
            peer.ask(request)
        yield peer.walk("Faktory PUSH", _PUSH % 2)
        yield peer.walk("FETCH answered at once", _FETCH)
        blocked.ask(_FETCH)
        yield peer.walk("PUSH that wakes a blocked FETCH", _PUSH % 3)
        yield peer.walk("FAIL with retry", _FAIL % 2)


def qless() -> Iterator[Walk]:
    client = _module("bench.protocols.qless").Qless("default")
    with server("qless") as made:
        peer = made.connect()
        first, second = client.pushes(2)
        peer.ask(first)
        peer.ask(client.settle(peer.ask(client.take())[0]))
        yield peer.walk("qless put", second)
        take = client.take()
        with traced() as calls:
            (reply,) = peer.ask(take)
        yield Walk("qless pop", calls)
        yield peer.walk("qless complete", client.settle(reply))


class _Source:
    """A journal of the given entries, for the lake's writer."""

    first = 1

    def __init__(self, entries: Sequence[bytes]) -> None:
        self._entries = entries

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        yield from list(enumerate(self._entries, 1))[after:]

    def sync(self) -> None:
        """Nothing is on disk."""


def lake() -> Iterator[Walk]:
    """From the entry of one PUSH to a published segment, in a new lake, and the same with the next PUSH."""
    with server("faktory") as made, tempfile.TemporaryDirectory() as folder:
        peer = made.connect(_HELLO % b"one")
        peer.ask(_PUSH % 1)
        made.entries.clear()
        peer.ask(_PUSH % 2)
        make = _module("crossdock.lake.writer").Writer
        with traced() as calls:
            writer = make(Path(folder) / "lake", Path(folder), _Source(made.entries))
            for _ in writer.take(lambda: False):
                pass
            writer.publish()
        yield Walk("first event, into a new lake", calls)
        peer.ask(_PUSH % 3)
        with traced() as calls:
            for _ in writer.take(lambda: False):
                pass
            writer.publish()
        yield Walk("next event into the lake", calls)
        writer.close()


def walks() -> Iterator[Walk]:
    yield from faktory()
    yield from qless()
    yield from lake()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=_TREE, help="the checkout to trace (this one)")
    parser.add_argument("--calls", metavar="WALK", default="", help="list the calls of the walks that have this name")
    args = parser.parse_args()
    tree = args.tree.resolve()
    sys.path[:0] = [str(tree), str(tree / "src")]
    print(f"| {'walk':<32} | calls | files | hops |")
    print(f"|{'-' * 34}|------:|------:|-----:|")
    for walk in walks():
        print(f"| {walk.name:<32} | {len(walk.calls):>5} | {walk.files:>5} | {walk.hops:>4} |")
        if args.calls and args.calls in walk.name:
            for call in walk.calls:
                print(f"    {call.file}: {call.function}")


if __name__ == "__main__":
    main()
