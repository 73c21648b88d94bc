"""Clients and workers of Resqu in threads, against a server that is killed and restarted.

All requests and replies are recorded. The load has plain, unique and deferred jobs, batches and plans; workers succeed,
fail, retry or die. A Faktory worker takes jobs from the same pools. A job is identified by the text in its args, a
plan's run by its id.
"""

import itertools
import json
import time
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from random import Random
from typing import Any, Final

from crossdock.client.base import connect
from crossdock.client.errors import Broken, NoServer, Refused
from crossdock.protocols.redis.resqu import scripts
from tests.support.accounting import Kind, Op, Outcome
from tests.support.client_threads import ClientThreads
from tests.support.patience import PATIENCE_S
from tests.support.peer import Got, Peer
from tests.support.peers import reach
from tests.support.resqu_peer import P, ViaResqu
from tests.support.server import Server

CONFIG: Final = '[mapping.static.default]\ndefault = "work"\n[mapping.batch.default]\ndefault = "mass"\n'
QUEUES: Final = ("work", "mass")
UIDS: Final = 6
BACKLOG: Final = 200
PLANS: Final = {"plain": "", "unique": "uid-plan"}  #: plans and their unique ids
WORKERS: Final = 3
FAKTORY: Final = "faktory-1"  #: the Faktory worker

SHA: Final = {name: sha for sha, name in scripts.KNOWN.items()}


class ResquLoad(ClientThreads):
    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._names = itertools.count(1)
        self._open = 0  #: jobs pushed but not settled
        self.uids: dict[str, str] = {}  #: of jobs pushed with a unique id and not deferred
        self.deferred = self.batches = 0
        roles = [(self._enqueue, 1), (self._unique, 3), (self._batch, 1), (self._work, WORKERS)]
        for role, count in roles:
            for _ in range(count):
                self._add_role(role, f"n~p~s~{len(self._threads) + 1}")
        random = Random("faktory")
        self._add_client(
            lambda: closing(reach(server, "faktory", FAKTORY)),
            lambda peer: self._work_elsewhere(peer, FAKTORY, random),
        )
        self.workers = [f"n~p~s~{number}" for number in range(1, len(self._threads))]

    def peer(self, name: str) -> ViaResqu:
        wire = connect("redis", "127.0.0.1", self._server.ports["redis"], "", PATIENCE_S)
        try:
            return ViaResqu(wire, name)
        except BaseException:
            wire.close()
            raise

    def _add_role(self, role: Callable[[ViaResqu, str, Random], None], name: str) -> None:
        random = Random(name)
        self._add_client(lambda: closing(self.peer(name)), lambda peer: role(peer, name, random))

    def _record(self, op: Op, act: Callable[[], object]) -> Outcome:
        """Execute and record the outcome. A lost connection is recorded and raised again; False is a refusal."""
        outcome = Outcome.UNKNOWN
        try:
            outcome = Outcome.REFUSED if act() is False else Outcome.OK
        except Refused:
            outcome = Outcome.REFUSED
        finally:
            self.ops.append(op._replace(ended=time.monotonic(), outcome=outcome))
        return outcome

    def _job(self, name: str, kind: str = "Work", **members: Any) -> dict[str, Any]:
        return {"class": "C", "sourceId": "s", "name": kind, "args": {"payload": name}, **members}

    def _new(self, what: str) -> str:
        return f"{what}-{next(self._names):06d}"

    def _may_push(self) -> bool:
        if self._open < BACKLOG:
            return True
        self._stop.wait(0.01)
        return False

    def _push(self, peer: ViaResqu, by: str, name: str, job: dict[str, Any]) -> Outcome:
        """As the Resqu client does: if the reply is lost, repeat the push once on a new connection."""
        text = json.dumps({**job, "id": name, "queue_time": time.time()})
        op = Op(Kind.PUSH, by, name, time.monotonic(), 0.0, crc=crc(name))
        outcome = Outcome.UNKNOWN
        try:
            try:
                peer.ask_redis("LPUSH", f"{P}unassigned", text)
            except Broken:
                self.up.wait()
                with closing(self.peer(by)) as again:
                    again.ask_redis("LPUSH", f"{P}unassigned", text)
            outcome = Outcome.OK
        except Refused:
            outcome = Outcome.REFUSED
        except NoServer as error:
            raise Broken(str(error)) from error
        finally:
            self._open += outcome is Outcome.OK
            self.ops.append(op._replace(ended=time.monotonic(), outcome=outcome))
        return outcome

    def _enqueue(self, peer: ViaResqu, by: str, random: Random) -> None:
        if self._may_push():
            name = self._new("plain")
            assert self._push(peer, by, name, self._job(name)) is not Outcome.REFUSED

    def _unique(self, peer: ViaResqu, by: str, random: Random) -> None:
        uid, defer = f"uid-{random.randrange(UIDS)}", random.randrange(2)
        state = f"{P}unique:{uid}:state"
        if peer.ask_redis("SETNX", state, "queued"):
            if random.random() < 0.02:
                raise Broken("between taking the uid and its push")
            name = self._new("unique")
            self.uids[name] = uid
            self._push(peer, by, name, self._job(name, unique={"uid": uid, "deferrableBy": defer}))
            return
        name = self._new("deferred")
        keys = ("2", state, f"{P}unique:{uid}:deferred")
        text = json.dumps(self._job(name, unique={"uid": uid, "deferrableBy": defer}))
        op = Op(Kind.PUSH, by, name, time.monotonic(), 0.0, crc=crc(name))
        defer_add = ("EVALSHA", SHA[scripts.DEFER_ADD], *keys, "running", text)
        self.deferred += self._record(op, lambda: peer.ask_redis(*defer_add) == 1) is Outcome.OK
        self._stop.wait(0.002)

    def _batch(self, peer: ViaResqu, by: str, random: Random) -> None:
        """All jobs of a batch become visible or none. Jobs of an abandoned batch must never become visible."""
        if not self._may_push():
            return
        number = next(self._names)
        batch, names = f"s:Import:{number:08x}", [self._new("member") for _ in range(random.randrange(1, 12))]
        stage, began, outcome = f"{P}uncommitted:{batch}", time.monotonic(), Outcome.REFUSED
        jobs = [json.dumps(self._job(name, "Import", id=name, queue_time=time.time())) for name in names]
        try:
            assert peer.ask_redis("EVALSHA", SHA[scripts.BATCH_INIT], "1", stage, jobs[0]) == 1
            assert peer.ask_redis("EXPIRE", stage, "600") == 1
            for length, text in enumerate(jobs[1:], 2):
                assert peer.ask_redis("LPUSHX", stage, text) == length
            if random.random() < 0.1:
                return
            outcome = Outcome.UNKNOWN
            keys = ("3", f"{P}committed", f"{P}committed:{batch}", stage)
            assert peer.ask_redis("EVALSHA", SHA[scripts.BATCH_COMMIT], *keys, batch)
            outcome = Outcome.OK
            self.batches += 1
            self._open += len(names)
        finally:
            ended = time.monotonic()
            self.ops += [Op(Kind.PUSH, by, name, began, ended, outcome, crc(name), number) for name in names]

    def plan(self, name: str, uid: str) -> None:
        """A plan that runs every second."""
        at, plan = int(time.time()) + 1, f"s_{name}"
        unique: dict[str, Any] = {"unique": {"uid": uid}} if uid else {}
        text = self._job("plan", id=plan, nextRun=at, recurrenceInterval="P0Y0M0DT0H0M1S", **unique)
        keys = (f"{P}plan:{plan}", f"{P}plan_schedule", f"{P}plan_schedule:{at}", f"{P}plan_list:s")
        with closing(self.peer("n~p~s~planner")) as peer:
            insert = ("EVALSHA", SHA[scripts.PLAN_INSERT], "4", *keys)
            assert peer.ask_redis(*insert, json.dumps(text), str(at), plan) == 1

    def _fetch(self, peer: Peer, by: str) -> Got | None:
        began = time.monotonic()
        peer.ask(*QUEUES, wait_s=0.05)
        got = peer.given()
        if got is not None:
            op = Op(Kind.FETCH, by, named(got), began, time.monotonic(), crc=crc(got.text))
            self.ops.append(op._replace(lease_s=peer.lease_s))
        return got

    def _work(self, peer: ViaResqu, by: str, random: Random) -> None:
        got = self._fetch(peer, by)
        if got is None:
            return
        name = named(got)
        try:
            self._settle(peer, by, got, random)
        except Broken:
            # The jobs in its list are delivered again unless they were settled.
            self.ops.append(Op(Kind.LOST, by, name, time.monotonic(), time.monotonic()))
            raise

    def _settle(self, peer: ViaResqu, by: str, got: Got, random: Random) -> None:
        chance, name = random.random(), named(got)
        uid = peer.uid(got.ident)
        if chance < 0.05:
            self.ops.append(Op(Kind.LOST, by, name, time.monotonic(), time.monotonic()))
            peer.die()
            raise Broken("the worker was killed")
        # the retry of a plan's run has a new id, and the id is its only name
        if uid and chance < 0.2 and got.text != "plan":
            self._record(Op(Kind.FAIL, by, name, time.monotonic(), 0.0), lambda: peer.fail(got.ident))
        elif uid and chance < 0.25:
            self._done(by, name, lambda: peer.fail(got.ident, final=True))
        elif uid:
            handed: list[str | None] = []
            self._done(by, name, lambda: handed.append(peer.finalise(uid)))
            if handed[0] is not None:
                if random.random() < 0.2:
                    raise Broken("the child was killed before it pushed what was deferred")
                peer.push_deferred(uid, handed[0])
            peer.ask_redis("RPOP", peer.buffer)
        else:
            self._done(by, name, lambda: peer.succeed(got.ident))

    def _done(self, by: str, name: str, act: Callable[[], object]) -> None:
        outcome = self._record(Op(Kind.ACK, by, name, time.monotonic(), 0.0), act)
        self._open -= outcome is Outcome.OK

    def _work_elsewhere(self, peer: Peer, by: str, random: Random) -> None:
        """Jobs that it holds when the connection is lost are settled on the next connection."""
        got = self._fetch(peer, by)
        if got is None:
            return
        name = named(got)
        try:
            self._done(by, name, lambda: peer.succeed(got.ident))
        except Broken:
            self._ack_again(by, got)
            raise

    def _ack_again(self, by: str, got: Got) -> None:
        self.up.wait()
        with suppress(NoServer), closing(reach(self._server, "faktory", by)) as peer:
            self._done(by, named(got), lambda: peer.succeed(got.ident))

    def settle(self, leased: list[Got]) -> None:
        """The Faktory worker settles the jobs it was leased in fetches whose reply it lost."""
        for got in leased:
            self._ack_again(FAKTORY, got)

    def drain(self) -> None:
        """Remove the plans, declare all workers' hosts dead and complete the remaining jobs."""
        with closing(self.peer("n~p~s~drain")) as peer:
            for plan in PLANS:
                assert peer.ask_redis("DEL", f"{P}plan:s_{plan}") == 1
            for name in self.workers:
                with closing(self.peer(name)) as worker:
                    worker.die()
            while True:
                # counted before the fetch, because they may be moved then
                more = peer.ask_redis("ZCARD", f"{P}delayed_queue_schedule")
                got = self._fetch(peer, "n~p~s~drain")
                if got is not None:
                    self._settle(peer, "n~p~s~drain", got, _AlwaysSucceeds())
                elif not more:
                    return


class _AlwaysSucceeds(Random):
    """Chooses the branches in which no worker dies and no job fails."""

    def random(self) -> float:
        return 0.99


def named(got: Got) -> str:
    return got.ident if got.text == "plan" else got.text


def crc(text: str) -> int:
    return zlib.crc32(text.encode())
