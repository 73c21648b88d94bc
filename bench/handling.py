"""What a request costs the server's process, without sockets and disk: `python -m bench.handling [--profile]`.

Bytes in, reply out, the turn's batch encoded and dropped. The figures are minima over slices of requests, which other
work on the machine disturbs little: so two versions of the code can be told apart where a load test shows only noise.
"""

import argparse
import asyncio
import cProfile
import gc
import os
import pstats
from collections.abc import Callable, Sequence
from random import Random
from time import thread_time
from typing import Any, Final, cast

from bench.doors.qless import MANY, Qless
from bench.table import show
from crossdock.engine.engine import Engine
from crossdock.engine.memory import Memory
from crossdock.server.clock import Clock
from crossdock.server.turn import Turn
from crossdock.wire.faktory.door import FaktoryDoor
from crossdock.wire.redis.door import RedisDoor
from crossdock.wire.redis.qless.service import Qless as QlessService
from crossdock.wire.session import Door, Session

#: Requests of one turn, and of one slice that is timed.
_TURN: Final = 16
_SLICE: Final = 512

_FAKTORY: Final = (
    b'PUSH {"jid":"%b","jobtype":"SomeJob","queue":"q","args":[1,"string",3],"priority":5,"retry":25,'
    b'"reserve_for":1800,"custom":{"a":"%b"}}\r\n'
)


class _Loop:
    """Callbacks run at the end of a turn; timers never."""

    def __init__(self) -> None:
        self._soon: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def call_soon(self, callback: Callable[..., None], *args: Any) -> None:
        self._soon.append((callback, args))

    def call_later(self, delay: float, callback: Callable[..., None]) -> "_Loop":
        return self

    def cancel(self) -> None:
        pass

    def run(self) -> None:
        while self._soon:
            soon, self._soon = self._soon, []
            for callback, args in soon:
                callback(*args)


class _Scribe:
    """A disk that is always quick enough."""

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        durable()


class _Outlet:
    def __init__(self) -> None:
        self.said: list[bytes] = []

    def deliver(self, reply: bytes, granted: object) -> None:
        self.said.append(reply)


class Bench:
    """One session at a desk of its own."""

    def __init__(self, door: Door) -> None:
        self._loop = _Loop()
        engine = Engine(Memory(), Random(1))
        self._turn = Turn(engine, _Scribe(), Clock(), cast(asyncio.AbstractEventLoop, self._loop), 1_000_000)
        self._session: Session = door.session(self._turn, lambda: None)
        self.best: dict[str, float] = {}

    def say(self, request: bytes) -> bytes:
        return self.phase("", [request])[0]

    def phase(self, name: str, requests: Sequence[bytes], weight: int = 1) -> list[bytes]:
        """All of them, a turn at a time; the best slice counts, a request worth `weight`."""
        outlet = _Outlet()
        turn, session, loop = self._turn, self._session, self._loop
        receive, handle = session.receive, session.handle
        size = max(_TURN, _SLICE // weight)
        for first in range(0, len(requests), size):
            part = requests[first : first + size]
            began = thread_time()
            for start in range(0, len(part), _TURN):
                turn.begin()
                for request in part[start : start + _TURN]:
                    answer = handle(receive(request)[0])
                    turn.reply(outlet, answer, session.granted)  # type: ignore[arg-type]  # all are bytes
                    session.granted = None
                loop.run()
            took = (thread_time() - began) / len(part) / weight
            if name and len(part) == size:
                self.best[name] = min(self.best.get(name, took), took)
        return outlet.said


def faktory(jobs: int) -> dict[str, float]:
    bench = Bench(FaktoryDoor(memory_mb=lambda: 0))
    assert bench.say(b'HELLO {"v":2}\r\n') == b"+OK\r\n"
    digits = os.urandom(16 * jobs).hex().encode()
    jids = [digits[at : at + 32] for at in range(0, len(digits), 32)]
    bench.phase("PUSH", [_FAKTORY % (jid, b"x" * 60) for jid in jids])
    bench.phase("FETCH", [b"FETCH q\r\n"] * jobs)
    bench.phase("ACK", [b'ACK {"jid":"%b"}\r\n' % jid for jid in jids])
    return bench.best


def qless(jobs: int) -> dict[str, float]:
    service = QlessService()
    door = RedisDoor(libraries=(service.library,), views=(service.view,), heralds=(service.tell,))
    bench, client = Bench(door), Qless("q")
    for _ in range(2):
        bench.phase("put", client.pushes(jobs))
        popped = bench.phase("pop", [client.take()] * jobs)
        bench.phase("complete", [client.settle(reply) for reply in popped])
    bench.phase("put", client.pushes(jobs))
    many = bench.phase(f"pop of {MANY}, each", [client.take(MANY)] * (jobs // MANY), MANY)
    assert sum(len(client.jids(reply)) for reply in many) == jobs // MANY * MANY
    return bench.best


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.handling", description=__doc__)
    parser.add_argument("--jobs", type=int, default=16_000)
    parser.add_argument("--profile", metavar="DOOR", help="where the time goes instead: faktory or qless")
    arguments = parser.parse_args()
    doors: dict[str, Callable[[int], dict[str, float]]] = {"faktory": faktory, "qless": qless}
    gc.disable()
    if arguments.profile:
        profile = cProfile.Profile()
        profile.runcall(doors[arguments.profile], arguments.jobs)
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
        return
    found = {door: load(arguments.jobs) for door, load in doors.items()}
    rows = [(door, name, f"{best * 1e6:.1f}") for door, each in found.items() for name, best in each.items()]
    show(f"microseconds a request, best of slices, {arguments.jobs:,} jobs", ("door", "request", "µs"), rows, text=2)


if __name__ == "__main__":
    main()
