"""The load program, a separate process: `python -m bench.load`, driven by bench/driver.py.

The first line of its stdin names the target. Each further line is a step (`phases 60000`), and each step prints one
line of figures. An unexpected reply ends the program with a message and exit code 1, without figures.
"""

import asyncio
import gc
import sys
from collections.abc import Sequence
from typing import Protocol

import msgspec
import uvloop

from bench.beanstalkd import BeanstalkdLoad
from bench.faktory import FaktoryLoad
from bench.figures import Run
from bench.lane import Lane
from bench.protocols import PROTOCOLS
from bench.protocols.phases import ProtocolLoad
from bench.protocols.qless import Qless, QlessLoad
from bench.protocols.resqu import ResquLoad
from bench.replies import Unexpected
from bench.target import Target, connect


class Order(msgspec.Struct, frozen=True):
    """The first line of stdin."""

    target: Target
    connections: int
    queue: str
    beside: Target | None = None  #: the Faktory listener of the same server, for one more connection


class Load(Protocol):
    async def step(self, name: str, size: int) -> Run: ...


async def _lanes(order: Order) -> Sequence[Lane]:
    return [await _lane(order.target) for _ in range(order.connections)]


async def _lane(target: Target) -> Lane:
    _, lane = await asyncio.get_running_loop().create_connection(Lane, sock=connect(target))
    return lane


def _load(order: Order, lanes: Sequence[Lane], beside: Lane | None) -> Load:
    protocol = order.target.protocol
    if protocol == "beanstalkd":
        return BeanstalkdLoad(lanes)
    if protocol == "faktory":
        return FaktoryLoad(lanes, order.queue)
    if protocol == "qless":
        return QlessLoad(lanes, Qless(order.queue, order.target.call, order.target.script))
    if protocol == "resqu":
        return ResquLoad(lanes, order.queue, beside)
    return ProtocolLoad(lanes, PROTOCOLS[protocol](order.queue))


async def _drive() -> None:
    order = msgspec.json.decode(sys.stdin.readline(), type=Order)
    lanes = await _lanes(order)
    load = _load(order, lanes, None if order.beside is None else await _lane(order.beside))
    for line in sys.stdin:
        name, size = line.split()
        run = await load.step(name, int(size))
        print(msgspec.json.encode(run).decode(), flush=True)


def main() -> None:
    gc.disable()  # a collection would look like a slow reply of the server
    try:
        uvloop.run(_drive())
    except (Unexpected, OSError) as error:
        sys.exit(f"bench: no figures: {str(error) or type(error).__name__}")


if __name__ == "__main__":
    main()
