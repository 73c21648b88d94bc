"""A random walk through qless' commands and those of another door, on one engine, with callers whose clocks lie."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from crossdock.model import commands as c
from crossdock.model.job import Form, Job, Links, Spec
from crossdock.model.job import Extra as JobExtra
from crossdock.model.states import State
from crossdock.wire.redis.qless.call import Raised
from tests.model.bench import RULES, TERMS
from tests.qless.replay import QlessDesk

JIDS = [f"j{each}" for each in range(9)]
QUEUES = ["a", "b", "c"]
WORKERS = ["w1", "w2", "w3"]
TAGS = ["red", "blue", "ünï"]
GROUPS = ["boom", "bang"]

#: Reads, and what moves only what is due: no job of another door may change by them.
LOOKS = frozenset({"pop", "peek", "queues", "jobs", "workers", "stats", "length", "get", "track", "failed"})


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.desk = QlessDesk()
        self.held: list[tuple[str, tuple[int, int]]] = []

    @property
    def t(self) -> float:
        """Most callers' clocks are right, some are a little off, a few lie."""
        off = self.random.choice([0.0, 0.0, 0.0, 0.25, -3.5, 90.0, 1e6, -1e9])
        return self.desk.now.wall + off

    def one(self, of: list[str]) -> str:
        return self.random.choice(of)

    def step(self) -> None:
        act = self.random.choices([self.call, self.other_door, self.pass_time, self.mishap], [70, 20, 8, 2])[0]
        act()

    def call(self) -> None:
        name, args = self.random.choice(self.calls)(self)
        foreign = self._foreign() if name in LOOKS else None
        call = [name, repr(self.t), *map(str, args)]
        try:
            self.desk.call(*call)
        except Raised:
            pass
        if foreign is not None:
            assert self._foreign().items() >= foreign.items(), f"{call} changed what another door set"

    def _foreign(self) -> dict[int, Any]:
        """Leases and waits that other doors set, and that are not over by the server's clock."""
        now = self.desk.now
        found: dict[int, Any] = {}
        for number, job in self.desk.memory.jobs.items():
            lease = job.lease
            if lease is not None and lease.via != "qless" and (lease.late is None or lease.late > now.steady):
                found[number] = lease.token
            elif job.state in (State.SCHEDULED, State.RETRYING) and job.origin != "qless" and job.due > now.wall:
                if job.extra is None or job.extra.history == ():
                    found[number] = job.state
        return found

    def other_door(self) -> None:
        desk, random = self.desk, self.random
        jid, queue, worker = self.one(JIDS), self.one(QUEUES), self.one(WORKERS)
        choice = random.randrange(7)
        if choice == 0:
            needs = [job.number for job in desk.memory.named(self.one(JIDS))]
            links = Links(needs=tuple(needs)) if needs and random.random() < 0.3 else None
            due = desk.now.wall + 50 if random.random() < 0.3 else 0.0
            extra = JobExtra(links=links) if links is not None else None
            desk.do(c.Enqueue("faktory", [Spec(jid, queue, "kind", b"[1]", Form.JSON, 0, RULES, due, extra)]))
        elif choice in (1, 2):
            job = desk.do(c.LeaseNext("faktory", random.sample(QUEUES, 2), worker, TERMS))
            if job is not None and job.lease is not None:
                self.held.append((job.jid, (job.number, job.lease.token)))
        elif choice == 3 and self.held:
            jid, held = self.held.pop(random.randrange(len(self.held)))
            desk.do(c.Succeed(jid, c.Claim("faktory", worker, held)))
        elif choice == 4 and self.held:
            jid, held = self.held.pop(random.randrange(len(self.held)))
            desk.do(c.Fail(jid, c.Claim("faktory", worker, held), "Oops", "text"))
        elif choice == 5 and self.held:
            desk.do(c.GiveBack("faktory", [self.held.pop()[1]]))
        else:
            self._by_hand()

    def _by_hand(self) -> None:
        numbers = self.random.sample(sorted(self.desk.memory.jobs), min(2, len(self.desk.memory.jobs)))
        act = self.random.randrange(3)
        if act == 0:
            self.desk.do(c.Requeue("faktory", numbers))
        elif act == 1:
            self.desk.do(c.Bury("faktory", numbers))
        else:
            self.desk.do(c.Remove("faktory", "discarded", numbers, frozenset(State)))

    def pass_time(self) -> None:
        self.desk.advance(self.random.choice([0.25, 5.0, 30.0, 61.0, 700.0]))

    def mishap(self) -> None:
        if self.random.random() < 0.2:
            self.desk.do(c.Flush("faktory"))
            self.held.clear()

    calls: list[Callable[["Walk"], tuple[str, list[Any]]]] = [
        lambda self: ("put", self._put()),
        lambda self: ("put", self._put()),
        lambda self: ("put", self._put()),
        lambda self: ("requeue", self._put()),
        lambda self: ("pop", [self.one(QUEUES), self.one(WORKERS), self.random.choice([0, 1, 2, 5])]),
        lambda self: ("pop", [self.one(QUEUES), self.one(WORKERS), self.random.choice([1, 2, 5])]),
        lambda self: ("pop", [self.one(QUEUES), self.one(WORKERS), self.random.choice([1, 2, 5])]),
        lambda self: ("peek", [self.one(QUEUES), 3]),
        lambda self: ("complete", self._complete()),
        lambda self: ("complete", self._complete()),
        lambda self: ("fail", [*self._running()[:2], self.one(GROUPS), "text"]),
        lambda self: ("retry", self._retry()),
        lambda self: ("heartbeat", self._running()[:2]),
        lambda self: ("timeout", [self._running()[0]]),
        lambda self: ("cancel", self.random.sample(JIDS, 2)),
        lambda self: ("priority", [self.one(JIDS), self.random.choice([0, 2.5, "inf", -7])]),
        lambda self: ("depends", [self.one(JIDS), *self.random.choice([["on", self.one(JIDS)], ["off", "all"]])]),
        lambda self: ("tag", [self.random.choice(["add", "remove"]), self.one(JIDS), self.one(TAGS)]),
        lambda self: ("track", [self.random.choice(["track", "untrack"]), self.one(JIDS)]),
        lambda self: ("log", [self.one(JIDS), "text", '{"a":1}']),
        lambda self: ("unfail", [self.one(QUEUES), self.one(GROUPS), 2]),
        lambda self: ("recur", self._recur()),
        lambda self: ("recur.update", ["r", "interval", self.random.choice([1, 30])]),
        lambda self: ("unrecur", ["r"]),
        lambda self: ("pause", [self.one(QUEUES)]),
        lambda self: ("unpause", [self.one(QUEUES)]),
        lambda self: ("queue.forget", [self.one(QUEUES)]),
        lambda self: ("worker.deregister", [self.one(WORKERS)]),
        lambda self: ("config.set", self._setting()),
        lambda self: ("config.unset", [self._setting()[0]]),
        lambda self: ("get", [self.one(JIDS)]),
        lambda self: ("track", []),
        lambda self: ("queues", []),
        lambda self: ("jobs", [self.one(["running", "stalled", "scheduled", "depends"]), self.one(QUEUES)]),
        lambda self: ("workers", self.random.choice([[], [self.one(WORKERS)]])),
        lambda self: ("stats", [self.one(QUEUES), self.desk.now.wall]),
        lambda self: ("failed", self.random.choice([[], [self.one(GROUPS)]])),
    ]

    def _running(self) -> list[str]:
        """A job that is leased, if one can be found: jid, worker, queue."""
        leased = [self.desk.memory.jobs[number] for _, number in self.desk.memory.shelves[State.LEASED]]
        job: Job | None = self.random.choice(leased) if leased else None
        if job is None or job.lease is None:
            return [self.one(JIDS), self.one(WORKERS), self.one(QUEUES)]
        return [job.jid, job.lease.worker, job.queue]

    def _complete(self) -> list[Any]:
        more = self.random.choice(
            [[], [], ["next", self.one(QUEUES)], ["next", "b", "delay", 9], ["next", "a", "depends", f'["{self.one(JIDS)}"]']]
        )
        return [*self._running(), "{}", *more]

    def _retry(self) -> list[Any]:
        jid, worker, queue = self._running()
        return [jid, queue, worker, self.random.choice([0, 12.5])]

    def _put(self) -> list[Any]:
        random = self.random
        args: list[Any] = [self.one(WORKERS), self.one(QUEUES), self.one(JIDS), "klass", "{}"]
        args.append(random.choice([0, 0, 0, 15.5]))
        if random.random() < 0.3:
            args += ["depends", json.dumps(random.sample(JIDS, 2))]
        if random.random() < 0.3:
            args += ["tags", json.dumps(random.choices(TAGS, k=2))]
        if random.random() < 0.5:
            args += ["retries", random.choice([0, 1, 5])]
        if random.random() < 0.3:
            args += ["priority", random.choice([-1, 0, 3])]
        return args

    def _recur(self) -> list[Any]:
        return [self.one(QUEUES), "r", "klass", "{}", "interval", 20, 0, "backlog", self.random.choice([0, 1, 3])]

    def _setting(self) -> list[Any]:
        return self.random.choice(
            [
                ["a-max-concurrency", 2],
                ["jobs-history-count", 3],
                ["grace-period", 0],
                ["heartbeat", -10],
                ["max-job-history", 3],
            ]
        )
