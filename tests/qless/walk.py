"""A random walk through the commands of qless and another protocol on one engine. Some clients have wrong clocks."""

import json
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any, Final

from crossdock.engine.job_view import qless_data
from crossdock.model.commands import admin
from crossdock.model.commands import core as c
from crossdock.model.job import Extra as JobExtra
from crossdock.model.job import Form, Job, Links, Spec
from crossdock.model.states import State
from crossdock.protocols.redis.qless.arguments import QlessError
from crossdock.protocols.redis.qless.call import THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from crossdock.protocols.redis.qless.perscript import dispatch as perscript
from tests.model.bench import RULES, TERMS
from tests.qless.replay import QlessDispatcher

DIALECTS: Final = (UNIFIED, THROTTLES, UNIFIED_2013)
JIDS = [f"j{each}" for each in range(9)]
QUEUES = ["a", "b", "c"]
WORKERS = ["w1", "w2", "w3"]
TAGS = ["red", "blue", "ünï"]
GROUPS = ["boom", "bang"]
GATES = ["gate", "turnstile", "ql:q:a"]

#: Commands that read or only move due jobs. They must not change jobs of another protocol.
LOOKS = frozenset({"pop", "peek", "queues", "jobs", "workers", "stats", "length", "get", "track", "failed"})


class Walk:
    """Calls in one of three dialects (unified, with throttles, of 2013), or in all of them in turn with puts of the
    per-script form in between."""

    def __init__(self, seed: int, *dialects: Dialect) -> None:
        self.random = Random(seed)
        self.dispatcher = QlessDispatcher()
        self.dialects = dialects or (UNIFIED,)
        self.dispatcher.dialect = self.dialects[0]
        throttled = any(dialect.throttled for dialect in self.dialects)
        self.calls = [*CALLS, *THROTTLE_CALLS] if throttled else CALLS
        self.held: list[tuple[str, tuple[int, int]]] = []

    @property
    def t(self) -> float:
        """Most clocks are right, some are a little off, a few are far off."""
        off = self.random.choice([0.0, 0.0, 0.0, 0.25, -3.5, 90.0, 1e6, -1e9])
        return self.dispatcher.now.wall + off

    def one(self, of: list[str]) -> str:
        return self.random.choice(of)

    def step(self) -> None:
        act = self.random.choices([self.call, self.other_protocol, self.pass_time, self.mishap], [70, 20, 8, 2])[0]
        act()

    def call(self) -> None:
        if len(self.dialects) > 1:
            self.dispatcher.dialect = self.random.choice(self.dialects)
            if self.random.random() < 0.1:
                self.oldest_put()
        name, args = self.random.choice(self.calls)(self)
        foreign = self._foreign() if name in LOOKS else None
        call = [name, repr(self.t), *map(str, args)]
        with suppress(QlessError):
            self.dispatcher.call(*call)
        if foreign is not None:
            assert self._foreign().items() >= foreign.items(), f"{call} changed what another protocol set"

    def oldest_put(self) -> None:
        tags = json.dumps(self.random.choices(TAGS, k=2))
        words = [self.one(QUEUES), self.one(JIDS), "klass", "{}", repr(self.t), "0", "tags", tags]
        queue, *args = map(str.encode, words)
        with suppress(QlessError):
            perscript.call_handler("put")(self.dispatcher, [queue], args, self.dispatcher.tell)

    def _foreign(self) -> dict[int, Any]:
        """Leases and delays of other protocols that have not ended by the server's clock."""
        now = self.dispatcher.now
        found: dict[int, Any] = {}
        for number, job in self.dispatcher.state.jobs.items():
            lease = job.lease
            if lease is not None and lease.via != "qless" and (lease.late is None or lease.late > now.steady):
                found[number] = lease.token
            elif job.state in (State.SCHEDULED, State.RETRYING) and qless_data(job) is None and job.due > now.wall:
                found[number] = job.state
        return found

    def other_protocol(self) -> None:
        dispatcher, random = self.dispatcher, self.random
        jid, queue, worker = self.one(JIDS), self.one(QUEUES), self.one(WORKERS)
        choice = random.randrange(7)
        if choice == 0:
            depends_on = [job.number for job in dispatcher.state.named(self.one(JIDS))]
            links = Links(depends_on=tuple(depends_on)) if depends_on and random.random() < 0.3 else None
            due = dispatcher.now.wall + 50 if random.random() < 0.3 else 0.0
            extra = JobExtra(links=links) if links is not None else None
            dispatcher.do(c.Enqueue("faktory", [Spec(jid, queue, "kind", b"[1]", Form.JSON, 0, RULES, due, extra)]))
        elif choice in (1, 2):
            job = dispatcher.do(c.LeaseNext("faktory", tuple(random.sample(QUEUES, 2)), worker, TERMS))
            if job is not None and job.lease is not None:
                self.held.append((job.jid, (job.number, job.lease.token)))
        elif choice == 3 and self.held:
            jid, held = self.held.pop(random.randrange(len(self.held)))
            dispatcher.do(c.Succeed(jid, c.Claim("faktory", worker, held)))
        elif choice == 4 and self.held:
            jid, held = self.held.pop(random.randrange(len(self.held)))
            dispatcher.do(c.Fail(jid, c.Claim("faktory", worker, held), "Oops", "text"))
        elif choice == 5 and self.held:
            dispatcher.do(c.GiveBack("faktory", [self.held.pop()[1]]))
        else:
            self._by_hand()

    def _by_hand(self) -> None:
        numbers = self.random.sample(sorted(self.dispatcher.state.jobs), min(2, len(self.dispatcher.state.jobs)))
        act = self.random.randrange(3)
        if act == 0:
            self.dispatcher.do(admin.Requeue("faktory", numbers))
        elif act == 1:
            self.dispatcher.do(admin.Bury("faktory", numbers))
        else:
            self.dispatcher.do(admin.Remove("faktory", "discarded", numbers, frozenset(State)))

    def pass_time(self) -> None:
        self.dispatcher.advance(self.random.choice([0.25, 5.0, 30.0, 61.0, 700.0]))

    def mishap(self) -> None:
        if self.random.random() < 0.2:
            self.dispatcher.do(admin.Flush("faktory"))
            self.held.clear()

    def running(self) -> list[str]:
        """A leased job, if there is one: jid, worker, queue."""
        leased = [self.dispatcher.state.jobs[number] for _, number in self.dispatcher.state.by_state[State.LEASED]]
        job: Job | None = self.random.choice(leased) if leased else None
        if job is None or job.lease is None:
            return [self.one(JIDS), self.one(WORKERS), self.one(QUEUES)]
        return [job.jid, job.lease.worker, job.queue]

    def complete(self) -> list[Any]:
        depends = json.dumps([self.one(JIDS)])
        ways: list[list[Any]] = [[], [], ["next", "b", "delay", 9], ["next", "a", "depends", depends]]
        more = self.random.choice([*ways, ["next", self.one(QUEUES)]])
        jid, worker, queue = self.running()
        if self.dispatcher.dialect.old and self.random.random() < 0.3:
            queue = self.one(QUEUES)  # the old dialects do not check the queue
        return [jid, worker, queue, "{}", *more]

    def retry(self) -> list[Any]:
        jid, worker, queue = self.running()
        return [jid, queue, worker, self.random.choice([0, 12.5])]

    def put(self) -> list[Any]:
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
        if self.dispatcher.dialect.throttled and random.random() < 0.7:
            args += ["throttles", json.dumps(random.choices(GATES, k=2))]
        return args[1:] if self.dispatcher.dialect.old else args

    def recur(self) -> list[Any]:
        return [self.one(QUEUES), "r", "klass", "{}", "interval", 20, 0, "backlog", self.random.choice([0, 1, 3])]

    def setting(self) -> list[Any]:
        return self.random.choice(
            [
                ["a-max-concurrency", 2],
                ["jobs-history-count", 3],
                ["grace-period", 0],
                ["heartbeat", -10],
                ["max-job-history", 3],
            ]
        )


CALLS: Final[list[Callable[[Walk], tuple[str, list[Any]]]]] = [
    lambda walk: ("put", walk.put()),
    lambda walk: ("put", walk.put()),
    lambda walk: ("put", walk.put()),
    lambda walk: ("requeue", walk.put()),
    lambda walk: ("pop", [walk.one(QUEUES), walk.one(WORKERS), walk.random.choice([0, 1, 2, 5])]),
    lambda walk: ("pop", [walk.one(QUEUES), walk.one(WORKERS), walk.random.choice([1, 2, 5])]),
    lambda walk: ("pop", [walk.one(QUEUES), walk.one(WORKERS), walk.random.choice([1, 2, 5])]),
    lambda walk: ("peek", [walk.one(QUEUES), 3]),
    lambda walk: ("complete", walk.complete()),
    lambda walk: ("complete", walk.complete()),
    lambda walk: ("fail", [*walk.running()[:2], walk.one(GROUPS), "text"]),
    lambda walk: ("retry", walk.retry()),
    lambda walk: ("heartbeat", walk.running()[:2]),
    lambda walk: ("timeout", [walk.running()[0]]),
    lambda walk: ("cancel", walk.random.sample(JIDS, 2)),
    lambda walk: ("priority", [walk.one(JIDS), walk.random.choice([0, 2.5, 1e308, -7])]),
    lambda walk: ("depends", [walk.one(JIDS), *walk.random.choice([["on", walk.one(JIDS)], ["off", "all"]])]),
    lambda walk: ("tag", [walk.random.choice(["add", "remove"]), walk.one(JIDS), walk.one(TAGS)]),
    lambda walk: ("track", [walk.random.choice(["track", "untrack"]), walk.one(JIDS)]),
    lambda walk: ("log", [walk.one(JIDS), "text", '{"a":1}']),
    lambda walk: ("unfail", [walk.one(QUEUES), walk.one(GROUPS), 2]),
    lambda walk: ("recur", walk.recur()),
    lambda walk: ("recur.update", ["r", "interval", walk.random.choice([1, 30])]),
    lambda walk: ("unrecur", ["r"]),
    lambda walk: ("pause", [walk.one(QUEUES)]),
    lambda walk: ("unpause", [walk.one(QUEUES)]),
    lambda walk: ("queue.forget", [walk.one(QUEUES)]),
    lambda walk: ("worker.deregister", [walk.one(WORKERS)]),
    lambda walk: ("config.set", walk.setting()),
    lambda walk: ("config.unset", [walk.setting()[0]]),
    lambda walk: ("get", [walk.one(JIDS)]),
    lambda walk: ("track", []),
    lambda walk: ("queues", []),
    lambda walk: ("jobs", [walk.one(["running", "stalled", "scheduled", "depends"]), walk.one(QUEUES)]),
    lambda walk: ("workers", walk.random.choice([[], [walk.one(WORKERS)]])),
    lambda walk: ("stats", [walk.one(QUEUES), walk.dispatcher.now.wall]),
    lambda walk: ("failed", walk.random.choice([[], [walk.one(GROUPS)]])),
]

THROTTLE_CALLS: Final[list[Callable[[Walk], tuple[str, list[Any]]]]] = [
    lambda walk: ("throttle.set", [walk.one(GATES), walk.random.choice([0, 1, 1, 2]), walk.random.choice([0, 0, 50])]),
    lambda walk: ("throttle.set", [walk.one(GATES), 1]),
    lambda walk: ("put", walk.put()),
    lambda walk: ("queue.throttle.set", [walk.one(QUEUES), walk.random.choice([0, 1, 3])]),
    lambda walk: ("throttle.delete", [walk.one(GATES)]),
    lambda walk: ("throttle.release", [walk.one(GATES), walk.one(JIDS)]),
    lambda walk: ("jobs", ["throttled", walk.one(QUEUES)]),
    lambda walk: ("config.set", ["max-pop-retry", walk.random.choice([1, 3])]),
]
