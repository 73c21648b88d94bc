"""Counts the interpreter steps of a PUSH, a FETCH and an ACK, or of another protocol's commands, by function.

A count does not depend on other work on the machine, so it shows the cost of a change to the hot path. Connection,
session, engine and encoding are the real ones; sockets and disk are left out.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from types import FrameType
from typing import Any, Final

from bench.faktory import job_text
from bench.protocols.qless import MANY, Qless
from bench.protocols.resqu import ResquLoad
from crossdock.engine.engine import Engine
from crossdock.engine.state import EngineState
from crossdock.protocols.base import WireProtocol
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless as QlessService
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.server.admission import Admission
from crossdock.server.clock import Clock
from crossdock.server.connection import Connection
from crossdock.server.connection_registry import ConnectionRegistry, Limits
from crossdock.server.event_counter import EventCounter
from crossdock.server.group_commit import GroupCommit

_A_COMMIT: Final = 64  #: requests per group commit


class _Scribe:
    """An entry is durable at once."""

    def append(self, batch: bytes, durable: Callable[[], None]) -> None:
        durable()


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """A transport without a buffer."""

    def get_write_buffer_size(self) -> int:
        return 0


class Bench:
    """One connection, and the group commits of its requests."""

    def __init__(self, protocol: str = "faktory") -> None:
        self._loop = asyncio.new_event_loop()
        self._commit = GroupCommit(
            Engine(state := EngineState(), Random(1)), _Scribe(), Clock(), self._loop, Admission(state, 10**7)
        )
        self._commit.observers.append(EventCounter().observe)
        self._peer = Connection(ConnectionRegistry(Limits()), _protocol(protocol), self._commit)
        self._transport = _Transport()
        self._peer.connection_made(self._transport)
        if protocol == "faktory":
            self._send([b'HELLO {"v":2,"wid":"w"}\r\n'])

    def close(self) -> None:
        self._loop.close()

    def count(self, requests: Sequence[bytes]) -> Counter[str]:
        """Steps by function."""
        steps: Counter[str] = Counter()

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            _, ours, where = frame.f_code.co_filename.rpartition("/crossdock/")
            if not ours:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                steps[f"{where} {frame.f_code.co_name}"] += 1
            return trace

        self._transport.written.clear()
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            self._send(requests)
        finally:
            sys.settrace(before)
        return steps

    @property
    def replies(self) -> list[bytes]:
        """The replies to the last counted requests."""
        return list(self._transport.written)

    def _send(self, requests: Sequence[bytes]) -> None:
        for first in range(0, len(requests), _A_COMMIT):
            for request in requests[first : first + _A_COMMIT]:
                self._peer.data_received(request)
            self._commit.when_settled(self._loop.stop)
            self._loop.run_forever()


def _protocol(name: str) -> WireProtocol:
    if name == "faktory":
        return FaktoryProtocol()
    qless, resqu = QlessService(), Resqu()
    views = (qless.view, *resqu.views)
    return RedisProtocol(libraries=(qless.library, resqu.library), views=views, event_handlers=(qless.publish_events,))


def _faktory(jobs: int) -> dict[str, Counter[str]]:
    bench, jids = Bench(), [b"%032d" % n for n in range(jobs)]
    found = {
        "PUSH": bench.count([b"PUSH %b\r\n" % (job_text(b"default") % jid) for jid in jids]),
        "FETCH": bench.count([b"FETCH default\r\n"] * jobs),
        "ACK": bench.count([b'ACK {"jid":"%b"}\r\n' % jid for jid in jids]),
    }
    bench.close()
    return found


def _qless(jobs: int) -> dict[str, Counter[str]]:
    bench, client = Bench("qless"), Qless("default")
    found = {"put": bench.count(client.pushes(jobs)), "pop": bench.count([client.take()] * jobs)}
    found["complete"] = bench.count([client.settle(reply) for reply in bench.replies])
    bench.count(client.pushes(jobs))
    found[f"pop of {MANY}, a job"] = bench.count([client.take(MANY)] * (jobs // MANY + 1))
    bench.close()
    return found


def _resqu(jobs: int) -> dict[str, Counter[str]]:
    bench, client = Bench("resqu"), ResquLoad((), "default")
    found = {"enqueue": bench.count(client.enqueues(jobs))}
    opening, pushes, _, _ = client.batch(jobs)
    bench.count(opening)
    found |= {"batch push": bench.count(pushes), "plan": bench.count(client.plans(jobs, 2**32))}
    bench.close()
    return found


_PROTOCOLS: Final = {"faktory": _faktory, "qless": _qless, "resqu": _resqu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=320, help="how many of each request (320)")
    parser.add_argument("--functions", type=int, default=12, help="how many functions to list (12)")
    parser.add_argument("--protocol", default="faktory", choices=tuple(_PROTOCOLS))
    args = parser.parse_args()
    for name, steps in _PROTOCOLS[args.protocol](args.jobs).items():
        print(f"{name}: {steps.total() / args.jobs:,.0f} steps")
        for function, count in steps.most_common(args.functions):
            print(f"  {count / args.jobs:6.1f}  {function}")


if __name__ == "__main__":
    main()
