"""A rig with short methods for frequent test steps."""

from crossdock.model.clock import Now
from crossdock.model.commands.core import (
    Claim,
    Enqueue,
    Fail,
    GiveBack,
    LeaseNext,
    LeaseTerms,
    Start,
    Succeed,
    Tick,
    Ticked,
)
from crossdock.model.job import Extra, Form, Job, LeaseRef, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, Policy
from tests.model.rig import Rig, fold

TERMS = LeaseTerms(1_800.0, 60.0, 86_400.0)
RULES = Policy(25, 0, 0, Backoff.POLYNOMIAL, Disposition.DEAD)


def spec(
    jid: str,
    queue: str = "default",
    *,
    priority: float = 0,
    policy: Policy = RULES,
    due: float = 0.0,
    links: Links | None = None,
    failures: int = 0,
) -> Spec:
    extra = None if links is None else Extra(links=links)
    return Spec(jid, queue, "kind", b"[]", Form.JSON, priority, policy, due, extra, failures)


class Bench(Rig):
    @property
    def now(self) -> Now:
        return self.clock.now

    def push(
        self,
        *jids: str,
        queue: str = "default",
        priority: float = 0,
        policy: Policy = RULES,
        due: float = 0.0,
        links: Links | None = None,
        failures: int = 0,
    ) -> list[Number]:
        """Pushes jobs with one command and returns their numbers."""
        first = self.state.counters.number + 1
        specs = [
            spec(jid, queue, priority=priority, policy=policy, due=due, links=links, failures=failures) for jid in jids
        ]
        self.do(Enqueue("faktory", specs))
        return [Number(number) for number in range(first, self.state.counters.number + 1)]

    def lease(self, *queues: str, worker: str = "w", terms: LeaseTerms = TERMS) -> Job:
        job = self.do(LeaseNext("faktory", queues or ("default",), worker, terms))
        assert job is not None
        assert job.lease is not None
        return job

    def nothing_to_lease(self, *queues: str, worker: str = "w", terms: LeaseTerms = TERMS) -> bool:
        return self.do(LeaseNext("faktory", queues or ("default",), worker, terms)) is None

    def work_order(self, *queues: str) -> list[str]:
        """Leases until nothing is left and returns the jids in order."""
        jids = []
        while (job := self.do(LeaseNext("faktory", queues or ("default",), "w", TERMS))) is not None:
            jids.append(job.jid)
        return jids

    def succeed(self, jid: str, worker: str = "w", held: LeaseRef | None = None) -> bool:
        return bool(self.do(Succeed(jid, Claim("faktory", worker, held))))

    def fail(self, jid: str, worker: str = "w", held: LeaseRef | None = None) -> bool:
        return bool(self.do(Fail(jid, Claim("faktory", worker, held), "Group", "message", ("line",))))

    def give_back(self, *leases: LeaseRef) -> None:
        self.do(GiveBack("faktory", leases))

    def tick(self, limit: int = 500) -> Ticked:
        return self.do(Tick(limit))

    def after(self, seconds: float) -> Ticked:
        """Advances both clocks and runs a tick."""
        self.clock.pass_by(seconds)
        return self.tick()

    def restart(self) -> None:
        """Restarts the engine from all its journal entries."""
        self.adopt(fold(self.batches))
        self.do(Start())

    def job(self, number: Number) -> Job:
        return self.state.jobs[number]


def held(job: Job) -> LeaseRef:
    assert job.lease is not None
    return job.number, job.lease.token
