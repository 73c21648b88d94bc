"""The load of all protocols plus features that only qless has: dependencies and recurring jobs."""

import json
import time
from random import Random
from typing import Final

from tests.support.accounting import Kind, Op
from tests.support.load import QUEUE, TRIES, Load, Role, crc
from tests.support.peer import Peer
from tests.support.peers import ViaFaktory, reach
from tests.support.qless_peer import ViaQless
from tests.support.server import Server

TICK: Final = "tick"  #: its jobs are `tick-1`, `tick-2` …
AGAIN: Final = "again"  #: the queue of the recurring jobs
EVERY_S: Final = 0.05


class DependencyLoad(Load):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.depends_on: dict[str, str] = {}  #: the dependency of each job that has one
        peer = reach(server, "qless", "setter")
        assert isinstance(peer, ViaQless)
        peer.call("recur", AGAIN, TICK, "Q", "{}", "interval", EVERY_S, 0, "retries", TRIES)
        peer.close()

    def _roles(self, peer: type[Peer], protocols: int) -> list[tuple[Role, int]]:
        roles: list[tuple[Role, int]] = [(self._consume, 2), (self._hold, 1)]
        if peer is ViaQless:
            roles += [(self._pairs, 3), (self._work_again, 1)]
        if peer is ViaFaktory:
            roles += [(self._requeue, 1), (self._work_again, 1)]
        return roles

    def _pairs(self, peer: Peer, name: str, random: Random) -> None:
        """Push a job and one that depends on it."""
        if not self._make_room():
            return
        assert isinstance(peer, ViaQless)
        (first, text), (second, after) = self._texts(peer, random, 2).items()
        self.depends_on[second] = first
        self._put(peer, name, first, text, [])
        self._put(peer, name, second, after, [first])

    def _put(self, peer: ViaQless, name: str, job: str, text: str, depends_on: list[str]) -> None:
        op = Op(Kind.PUSH, name, job, time.monotonic(), 0.0, crc=crc(text))
        self._record(op, lambda: peer.push(QUEUE, text, retry=TRIES, ident=job, depends=json.dumps(depends_on)))

    def _work_again(self, peer: Peer, name: str, random: Random) -> None:
        began = time.monotonic()
        peer.ask(AGAIN)
        got = peer.given()
        if got is None:
            self._stop.wait(0.01)
            return
        self.ops.append(Op(Kind.FETCH, name, got.ident, began, time.monotonic()))
        kind = Kind.FAIL if random.random() < 0.1 else Kind.ACK
        settle = peer.fail if kind is Kind.FAIL else peer.succeed
        self._record(Op(kind, name, got.ident, time.monotonic(), 0.0), lambda: settle(got.ident))
