"""Producers and consumers of all protocols in threads, against a server that is killed and restarted.

All requests and replies are recorded. A job is identified by a UUID, the first word of its text, because each protocol
has a different id for it.
"""

import itertools
import time
import uuid
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from random import Random
from typing import Final

from crossdock.client.errors import Broken, NoServer
from tests.support.accounting import Kind, Op, Outcome
from tests.support.client_threads import ClientThreads
from tests.support.peer import Got, Peer
from tests.support.peers import PEERS, ViaFaktory, ViaMasenko, reach
from tests.support.server import Server

BACKLOG: Final = 1_000
BULK: Final = 12
HELD: Final = 10
QUEUE: Final = "default"
TRIES: Final = 200  #: more than the number of times any job is failed here
PRODUCERS, CONSUMERS = 8, 8  #: of all protocols together

Role = Callable[[Peer, str, Random], None]


def named(text: str) -> str:
    """The id of the job that has this text."""
    return text.partition(" ")[0]


class Load(ClientThreads):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._bulks = itertools.count(1)
        self.origins: dict[str, str] = {}  #: the protocol each job was pushed through
        self._fetched = self._pushed = 0
        protocols = [protocol for protocol, peer in PEERS.items() if (peer.listener or protocol) in server.ports]
        for protocol in protocols:
            for role, count in self._roles(PEERS[protocol], len(protocols)):
                for n in range(count):
                    self._add_role(protocol, role, f"{protocol}-{role.__name__.strip('_')}-{n}")

    def _add_role(self, protocol: str, role: Role, name: str) -> None:
        random = Random(name)
        self._add_client(lambda: closing(reach(self._server, protocol, name)), lambda peer: role(peer, name, random))

    def _roles(self, peer: type[Peer], protocols: int) -> list[tuple[Role, int]]:
        roles: list[tuple[Role, int]] = [
            (self._produce, PRODUCERS // protocols),
            (self._consume, CONSUMERS // protocols),
        ]
        roles.append((self._hold, 1))
        if peer.atomic:
            roles.append((self._produce_bulk, 1))
        if peer is ViaFaktory:
            roles.append((self._requeue, 1))
        return roles

    def _record(self, op: Op, act: Callable[[], object]) -> None:
        """Execute and record the outcome. A lost connection is recorded and raised again; False is a refusal.

        The accounting decides whether a refused settlement was correct, because it knows all deliveries of the job.
        """
        outcome = Outcome.UNKNOWN
        try:
            outcome = Outcome.REFUSED if act() is False else Outcome.OK
        finally:
            self.ops.append(op._replace(ended=time.monotonic(), outcome=outcome))

    def _texts(self, peer: Peer, random: Random, count: int) -> dict[str, str]:
        """Texts of new jobs by id."""
        self._pushed += count
        names = [str(uuid.UUID(int=random.getrandbits(128), version=4)) for _ in range(count)]
        self.origins.update(dict.fromkeys(names, peer.protocol))
        return {name: f"{name} {random.randbytes(random.choice((10, 50, 300))).hex()}" for name in names}

    def _after_restart(self) -> None:
        """Requests cut off by a kill are counted wrongly, so set the count to the actual backlog."""
        with closing(self._server.client()) as client:
            self._pushed, self._fetched = client.sizes()["enqueued"], 0

    def _make_room(self) -> bool:
        if self._pushed - self._fetched < BACKLOG:
            return True
        self._stop.wait(0.01)
        return False

    def _produce(self, peer: Peer, name: str, random: Random) -> None:
        if self._make_room():
            ((job, text),) = self._texts(peer, random, 1).items()
            op = Op(Kind.PUSH, name, job, time.monotonic(), 0.0, crc=crc(text))
            self._record(op, lambda: peer.push(QUEUE, text, retry=TRIES, ident=job))

    def _produce_bulk(self, peer: Peer, name: str, random: Random) -> None:
        if self._make_room():
            texts = self._texts(peer, random, BULK)
            self._together(name, None, texts, lambda: peer.push_many(QUEUE, texts))

    def _together(self, name: str, settled: str | None, texts: dict[str, str], act: Callable[[], None]) -> None:
        """Push jobs and optionally settle one, all in one transaction."""
        number, began, outcome = next(self._bulks), time.monotonic(), Outcome.UNKNOWN
        try:
            act()
            outcome = Outcome.OK
        finally:
            ended = time.monotonic()
            ops = [Op(Kind.PUSH, name, job, began, ended, outcome, crc(text), number) for job, text in texts.items()]
            if settled is not None:
                ops.append(Op(Kind.ACK, name, settled, began, ended, outcome, bulk=number))
            self.ops += ops

    def _fetch(self, peer: Peer, name: str) -> Got | None:
        began = time.monotonic()
        peer.ask(QUEUE)
        got = peer.given()
        if got is not None:
            self._fetched += 1
            job = named(got.text)
            lease_s = min(peer.lease_s, PEERS[self.origins[job]].pushed_lease_s)
            op = Op(Kind.FETCH, name, job, began, time.monotonic(), crc=crc(got.text))
            self.ops.append(op._replace(bound=peer.bound, lease_s=lease_s))
        elif not peer.waits:
            self._stop.wait(0.01)
        return got

    def _consume(self, peer: Peer, name: str, random: Random) -> None:
        if random.random() < 0.002:  # a client that dies during a fetch
            peer.ask(QUEUE)
            raise Broken("on purpose")
        got = self._fetch(peer, name)
        if got is None:
            return
        chance, job = random.random(), named(got.text)
        if chance < 0.1:
            self._fetched -= 1
            self._record(Op(Kind.FAIL, name, job, time.monotonic(), 0.0), lambda: peer.fail(got.ident))
        elif chance < 0.13 and peer.bound:
            self._fetched -= 1
            now = time.monotonic()
            self.ops.append(Op(Kind.LOST, name, job, now, now))
            raise Broken("on purpose")
        elif chance < 0.3 and isinstance(peer, ViaMasenko):
            texts = self._texts(peer, random, 2)
            self._together(name, job, texts, lambda: peer.transact([got.ident], QUEUE, list(texts.values())))
        else:
            self._ack(peer, name, got, again=random.random() < 0.5)

    def _ack(self, peer: Peer, name: str, got: Got, *, again: bool) -> None:
        job = named(got.text)
        try:
            self._record(Op(Kind.ACK, name, job, time.monotonic(), 0.0), lambda: peer.succeed(got.ident, job.encode()))
        except Broken:
            if again and not peer.bound:
                self._ack_again(peer.protocol, name, got)
            raise

    def _hold(self, peer: Peer, name: str, random: Random) -> None:
        """A slow worker that holds several jobs for a second.

        Leases that are not bound to a connection survive a restart.
        """
        held: list[Got] = []
        try:
            while len(held) < HELD and not self._stop.is_set():
                got = self._fetch(peer, name)
                if got is not None:
                    held.append(got)
            self._stop.wait(random.uniform(0.5, 1.5))
            while peer.bound and held:
                self._ack(peer, name, held.pop(), again=False)
        finally:
            for got in held if not peer.bound else ():
                self._ack_again(peer.protocol, name, got)

    def _ack_again(self, protocol: str, name: str, got: Got) -> None:
        """As a worker does that finds its connection closed when its work is done."""
        while not self._stop.is_set():
            self.up.wait()
            with suppress(Broken, NoServer), closing(reach(self._server, protocol, name)) as peer:
                self._ack(peer, name, got, again=False)
                return

    def _requeue(self, peer: Peer, name: str, random: Random) -> None:
        """Requeue the jobs that wait for their next attempt."""
        _requeue(peer)
        self._stop.wait(0.2)

    def drain(self) -> None:
        """Complete all jobs that are ready or wait for a retry, with the server up and no other clients."""
        with closing(reach(self._server, "faktory", "drain")) as peer:
            _requeue(peer)
            while waiting := peer.look(QUEUE):
                for _ in range(waiting):
                    got = self._fetch(peer, "drain")
                    assert got is not None
                    self._ack(peer, "drain", got, again=False)
                _requeue(peer)


def _requeue(peer: Peer) -> None:
    assert isinstance(peer, ViaFaktory)
    peer.call('MUTATE {"cmd":"requeue","target":"retries"}')


def crc(text: str) -> int:
    return zlib.crc32(text.encode())
