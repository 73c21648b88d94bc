"""Clients that use batches, unique jobs, a throttled queue and cron jobs. All operations are recorded."""

import itertools
import time
import zlib
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from tests.support.accounting import Kind, Op, Outcome
from tests.support.client_threads import ClientThreads
from tests.support.faktory_client import Client, Gone, Refused
from tests.support.server import Server

KEYS: Final = 8  #: number of distinct unique jobs
BACKLOG: Final = 300
QUEUES: Final = ("calls", "work", "unique", "throttled", "cron")


class Batch(NamedTuple):
    bid: str
    members: list[tuple[str, Outcome]]
    committed: list[Outcome]  #: of its COMMIT, if it was sent


class SpecialLoad(ClientThreads):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._jids = itertools.count(1)
        self._open = 0  #: jobs pushed and not acknowledged
        self.batches: list[Batch] = []
        self.keys: dict[str, str] = {}  #: of unique jobs
        self.queues: dict[str, str] = {}  #: of delivered jobs
        roles = [(self._batch, 2), (self._unique, 2), (self._throttled, 1), (self._consume, 4), (self._requeue, 1)]
        for role, count in roles:
            for n in range(count):
                self._add_role(role, f"{role.__name__.strip('_')}-{n}")

    def _add_role(self, role: Callable[[Client, str, Random], None], name: str) -> None:
        random = Random(name)
        self._add_client(lambda: self._server.client(wid=name), lambda client: role(client, name, random))

    def _record(self, kind: Kind, name: str, jid: str, text: str, act: Callable[[], Any]) -> Outcome:
        """Execute and record the outcome. A lost connection is recorded as UNKNOWN."""
        began, crc = time.monotonic(), zlib.crc32(text.encode())
        outcome = Outcome.OK
        try:
            act()
        except Gone:
            outcome = Outcome.UNKNOWN
        except Refused:
            outcome = Outcome.REFUSED
        self.ops.append(Op(kind, name, jid, began, time.monotonic(), outcome, crc))
        return outcome

    def _push(self, client: Client, name: str, queue: str, text: str, **fields: Any) -> tuple[str, Outcome]:
        jid = f"{queue}-{next(self._jids):06d}"
        outcome = self._record(Kind.PUSH, name, jid, text, lambda: client.push(jid, queue, [text], **fields))
        self._open += outcome is Outcome.OK
        return jid, outcome

    def _may_push(self) -> bool:
        if self._open < BACKLOG:
            return True
        self._stop.wait(0.01)
        return False

    def _batch(self, client: Client, name: str, random: Random) -> None:
        if not self._may_push():
            return
        callback = {"jobtype": "called", "queue": "calls", "args": ["success"]}
        bid = client.call("BATCH NEW", {"success": callback}).decode()
        batch = Batch(bid, [], [])
        self.batches.append(batch)
        for _ in range(random.randrange(5)):
            batch.members.append(self._push(client, name, "work", bid, custom={"bid": bid}))
            if batch.members[-1][1] is Outcome.UNKNOWN:
                raise Gone("while pushing a member")
        try:
            client.call(f"BATCH COMMIT {bid}")
            batch.committed.append(Outcome.OK)
        except Gone:
            batch.committed.append(Outcome.UNKNOWN)
            raise

    def _unique(self, client: Client, name: str, random: Random) -> None:
        key = f"key-{random.randrange(KEYS)}"
        jid, outcome = self._push(client, name, "unique", key, custom={"unique_for": 3_600})
        self.keys[jid] = key
        if outcome is Outcome.UNKNOWN:
            raise Gone("while pushing a unique job")

    def _throttled(self, client: Client, name: str, random: Random) -> None:
        if self._may_push() and self._push(client, name, "throttled", "t")[1] is Outcome.UNKNOWN:
            raise Gone("while pushing a throttled job")

    def _consume(self, client: Client, name: str, random: Random) -> None:
        began = time.monotonic()
        found = client.fetch(*random.sample(QUEUES, len(QUEUES)))
        if found is None:
            return
        jid, text = found["jid"], found["args"][0]
        self.queues[jid] = found["queue"]
        self.ops.append(Op(Kind.FETCH, name, jid, began, time.monotonic(), Outcome.OK, zlib.crc32(text.encode())))
        if found["queue"] == "throttled":
            self._stop.wait(0.005)  # work takes a while, and other workers compete for the throttled queue
        if random.random() < 0.1:
            outcome = self._record(Kind.FAIL, name, jid, "", lambda: client.fail(jid))
        else:
            outcome = self._record(Kind.ACK, name, jid, "", lambda: client.ack(jid))
            self._open -= outcome is Outcome.OK and found["queue"] not in ("calls", "cron")
        if outcome is Outcome.UNKNOWN:
            raise Gone("while settling")

    def _requeue(self, client: Client, name: str, random: Random) -> None:
        client.mutate("requeue", "retries")
        self._stop.wait(0.1)

    def settle(self, leased: list[tuple[str, str]]) -> None:
        """Settle leases whose worker lost its connection: the worker reconnects and sends ACK."""
        for jid, worker in leased:
            with self._server.client(wid=worker) as client:
                assert self._record(Kind.ACK, worker, jid, "", partial(client.ack, jid)) is Outcome.OK

    def drain(self) -> None:
        """Complete all jobs except new cron jobs, with no other clients."""
        with self._server.client(wid="drain") as client:
            while True:
                client.mutate("requeue", "retries")
                waiting = client.info()["faktory"]["queues"]
                if not sum(waiting.get(queue, 0) for queue in QUEUES if queue != "cron"):
                    return
                self._drain_one(client)

    def _drain_one(self, client: Client) -> None:
        began = time.monotonic()
        found = client.fetch(*(queue for queue in QUEUES if queue != "cron"))
        if found is not None:
            jid, text = found["jid"], found["args"][0]
            self.queues[jid] = found["queue"]
            self.ops.append(
                Op(Kind.FETCH, "drain", jid, began, time.monotonic(), Outcome.OK, zlib.crc32(text.encode()))
            )
            assert self._record(Kind.ACK, "drain", jid, "", lambda: client.ack(jid)) is Outcome.OK
