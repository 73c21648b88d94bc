"""Producers and consumers in threads, against a server that comes and goes; all they do and hear is recorded."""

import itertools
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final

from tests.support.accounting import Kind, Op, Outcome
from tests.support.faktory_client import Client, Gone, Refused, job
from tests.support.server import Server

BACKLOG: Final = 3_000
BULK: Final = 40
HELD: Final = 10


class Load:
    """`up` is set while the server can be reached. `finish` ends all threads and raises what went wrong in one."""

    def __init__(self, server: Server, *, producers: int = 3, bulk_producers: int = 1, consumers: int = 4) -> None:
        self._server = server
        self._stop = threading.Event()
        self.up = threading.Event()
        self._errors: list[BaseException] = []
        self._bulks = itertools.count(1)
        self.ops: list[Op] = []  # list.append is atomic
        self._fetched = self._pushed = 0
        roles = [(self._produce, producers), (self._produce_bulk, bulk_producers), (self._consume, consumers)]
        roles += [(self._hold, 1), (self._requeue, 1)]
        self._threads = [
            threading.Thread(target=self._run, args=(role, f"{role.__name__.strip('_')}-{n}"), daemon=True)
            for role, count in roles
            for n in range(count)
        ]

    def start(self) -> None:
        self.up.set()
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        self.up.set()
        for thread in self._threads:
            thread.join(30)
        if self._errors:
            raise self._errors[0]
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def _run(self, role: Callable[[Client, str, Random], None], name: str) -> None:
        """Do the role's work again and again; connect anew whenever the connection was lost."""
        random = Random(name)
        try:
            while not self._stop.is_set():
                self.up.wait()
                with suppress(Gone), self._server.client(wid=name) as client:
                    while not self._stop.is_set():
                        role(client, name, random)
        except BaseException as error:  # noqa: BLE001, raised again by `finish`
            self._errors.append(error)

    def _record(self, kind: Kind, name: str, jid: str, began: float, crc: int, act: Callable[[], Any]) -> None:
        """Carry out and note the outcome. A lost connection is noted, and raised again; so is a push that was refused.

        A settlement that was refused is for the accounting to judge: it knows who else was given the job.
        """
        try:
            act()
        except Gone:
            self.ops.append(Op(kind, name, jid, began, time.monotonic(), Outcome.UNKNOWN, crc))
            raise
        except Refused:
            self.ops.append(Op(kind, name, jid, began, time.monotonic(), Outcome.REFUSED, crc))
            if kind is Kind.PUSH:
                raise
            return
        self.ops.append(Op(kind, name, jid, began, time.monotonic(), Outcome.OK, crc))

    def _payload(self, random: Random) -> str:
        return random.randbytes(random.choice((10, 50, 300))).hex()

    def _make_room(self) -> bool:
        if self._pushed - self._fetched < BACKLOG:
            return True
        self._stop.wait(0.01)
        return False

    def _produce(self, client: Client, name: str, random: Random) -> None:
        if self._make_room():
            self._pushed += 1
            jid, payload = f"{name}-{random.getrandbits(64):x}", self._payload(random)
            crc = zlib.crc32(payload.encode())
            self._record(Kind.PUSH, name, jid, time.monotonic(), crc, lambda: client.push(jid, args=[payload]))

    def _produce_bulk(self, client: Client, name: str, random: Random) -> None:
        if not self._make_room():
            return
        self._pushed += BULK
        number = next(self._bulks)
        payloads = {f"{name}-{random.getrandbits(64):x}": self._payload(random) for _ in range(BULK)}
        began = time.monotonic()
        outcome = Outcome.UNKNOWN
        try:
            refused = client.push_many([job(jid, args=[payload]) for jid, payload in payloads.items()])
            assert refused == {}
            outcome = Outcome.OK
        finally:
            ended = time.monotonic()
            self.ops += [
                Op(Kind.PUSH, name, jid, began, ended, outcome, zlib.crc32(payload.encode()), number)
                for jid, payload in payloads.items()
            ]

    def _consume(self, client: Client, name: str, random: Random) -> None:
        began = time.monotonic()
        if random.random() < 0.002:  # a client that dies while it fetches
            client.ask("FETCH default")
            raise Gone("on purpose")
        found = client.fetch()
        if found is None:
            return
        self._fetched += 1
        jid = found["jid"]
        crc = zlib.crc32(found["args"][0].encode())
        self.ops.append(Op(Kind.FETCH, name, jid, began, time.monotonic(), Outcome.OK, crc))
        if random.random() < 0.1:
            self._fetched -= 1
            self._record(Kind.FAIL, name, jid, time.monotonic(), 0, lambda: client.fail(jid))
            return
        try:
            self._record(Kind.ACK, name, jid, time.monotonic(), 0, lambda: client.ack(jid))
        except Gone:
            if random.random() < 0.5:
                self._ack_again(name, jid)
            raise

    def _hold(self, client: Client, name: str, random: Random) -> None:
        """A slow worker: it has several jobs for a second, over a restart too."""
        held: list[str] = []
        try:
            while len(held) < HELD and not self._stop.is_set():
                began = time.monotonic()
                found = client.fetch()
                if found is not None:
                    self._fetched += 1
                    held.append(found["jid"])
                    crc = zlib.crc32(found["args"][0].encode())
                    self.ops.append(Op(Kind.FETCH, name, held[-1], began, time.monotonic(), Outcome.OK, crc))
            self._stop.wait(random.uniform(0.5, 1.5))
        finally:
            for jid in held:
                self._ack_again(name, jid)

    def _ack_again(self, name: str, jid: str) -> None:
        """As a worker does that finds its connection gone when its work is done."""
        while not self._stop.is_set():
            self.up.wait()
            with suppress(Gone), self._server.client(wid=name) as client:
                self._record(Kind.ACK, name, jid, time.monotonic(), 0, lambda: client.ack(jid))
                return

    def _requeue(self, client: Client, name: str, random: Random) -> None:
        client.mutate("requeue", "retries")
        self._stop.wait(0.2)

    def drain(self) -> None:
        """Work off what is ready or waits for its retry, with the server up and all other clients gone."""
        with self._server.client(wid="drain") as client:
            while True:
                client.mutate("requeue", "retries")
                if not client.sizes()["enqueued"]:
                    return
                began = time.monotonic()
                found = client.fetch()
                if found is not None:
                    crc = zlib.crc32(found["args"][0].encode())
                    jid = found["jid"]
                    self.ops.append(Op(Kind.FETCH, "drain", jid, began, time.monotonic(), Outcome.OK, crc))
                    self._record(Kind.ACK, "drain", jid, time.monotonic(), 0, partial(client.ack, jid))
