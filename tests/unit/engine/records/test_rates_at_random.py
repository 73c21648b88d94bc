"""Rate limits under random commands: no limit is exceeded, indexes agree with the jobs, and recovery agrees."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from crossdock.engine.jobs.lease import more_candidates
from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file as snapshot
from crossdock.model.commands.admin import Bury, Remove, Requeue, Reroute
from crossdock.model.commands.core import Claim, Enqueue, Fail, LeaseNext, SetRates, Succeed
from crossdock.model.commands.qless import Pop
from crossdock.model.events import Leased
from crossdock.model.job import Extra, Form, Job, RateTerms, Spec
from crossdock.model.records import FROM_SETTINGS, RateScope, RateSpec
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import RULES, TERMS, Bench

QUEUES, KINDS, NAMES = ("p", "q"), ("mail", "report", "sms"), ("ann", "ben")
#: Limits that stay for the whole run, so that their leases can be counted.
FIXED = (
    RateSpec("fixed-kind", RateScope.KIND, "mail", 3, 10.0),
    RateSpec("fixed-queue", RateScope.QUEUE, "q", 5, 20.0),
)

specs = st.builds(
    RateSpec,
    st.sampled_from(("one", "two")),
    st.sampled_from((RateScope.KIND, RateScope.QUEUE)),
    st.sampled_from((*KINDS, *QUEUES)),
    st.integers(1, 4),
    st.sampled_from((1.0, 10.0)),
)
steps = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(QUEUES), st.sampled_from(KINDS), st.sampled_from((None, *NAMES))),
    st.tuples(st.just("push"), st.sampled_from(QUEUES), st.sampled_from(KINDS), st.sampled_from((None, *NAMES))),
    st.tuples(st.just("lease"), st.sampled_from((("p",), ("q",), ("p", "q")))),
    st.tuples(st.just("pop"), st.sampled_from(QUEUES), st.integers(1, 5)),
    st.tuples(st.just("pass"), st.sampled_from((0.1, 1.0, 3.4, 10.0, 30.0))),
    st.tuples(st.just("tick"), st.integers(1, 10)),
    st.tuples(st.just("settle"), st.booleans()),
    st.tuples(st.just("remove"), st.integers(0, 50)),
    st.tuples(st.just("bury"), st.integers(0, 50)),
    st.tuples(st.just("requeue"), st.integers(0, 50)),
    st.tuples(st.just("move"), st.integers(0, 50), st.sampled_from(QUEUES)),
    st.tuples(st.just("rates"), st.lists(specs, max_size=2, unique_by=lambda spec: spec.name)),
    st.tuples(st.just("reload")),
)


class Run:
    def __init__(self) -> None:
        self.bench = Bench()
        self.bench.do(SetRates("app:fixed", FIXED))
        self.pushed = 0

    def any_job(self, at: int) -> list[int]:
        numbers = list(self.bench.state.jobs)
        return [numbers[at % len(numbers)]] if numbers else []

    def push(self, queue: str, kind: str, name: str | None) -> None:
        extra = None if name is None else Extra(rate=RateTerms(name, 2, 10.0))
        self.pushed += 1
        job = Spec(f"j{self.pushed}", queue, kind, b"[]", Form.JSON, 0, RULES, 0.0, extra)
        self.bench.do(Enqueue("faktory", [job]))

    def lease(self, queues: tuple[str, ...]) -> None:
        command = LeaseNext("faktory", queues, "w", TERMS)
        for _ in range(10):
            if self.bench.do(command) is not None or not more_candidates(self.bench.state, command, self.bench.now):
                return
        raise AssertionError("a lease does not come to an end")

    def pop(self, queue: str, count: int) -> None:
        self.bench.do(Pop("qless", self.bench.now.wall, queue, "w", count, 60.0))

    def settle(self, success: bool) -> None:
        leased: Job | None = next((job for job in self.bench.state.jobs.values() if job.lease is not None), None)
        if leased is not None and leased.lease is not None:
            claim = Claim(leased.lease.via, "w", (leased.number, leased.lease.token))
            self.bench.do(Succeed(leased.jid, claim) if success else Fail(leased.jid, claim, "G", "m"))

    def remove(self, at: int) -> None:
        self.bench.do(Remove("admin", "discarded", self.any_job(at), frozenset(State)))

    def bury(self, at: int) -> None:
        self.bench.do(Bury("admin", self.any_job(at)))

    def requeue(self, at: int) -> None:
        self.bench.do(Requeue("admin", self.any_job(at)))

    def move(self, at: int, queue: str) -> None:
        self.bench.do(Reroute("admin", queue, self.any_job(at)))

    def rates(self, wanted: list[RateSpec]) -> None:
        self.bench.do(SetRates(FROM_SETTINGS, wanted))

    def tick(self, limit: int) -> None:
        self.bench.tick(limit)

    def reload(self) -> None:
        """Continues from a snapshot."""
        now = self.bench.now
        with TemporaryDirectory() as folder:
            path = Path(folder, "snapshot")
            snapshot.write(path, self.bench.state, 1, now.wall, now.steady)
            loaded = snapshot.load(path).state
        invariants.check(loaded)
        assert limits(loaded) == limits(self.bench.state)
        self.bench.adopt(loaded)

    def pass_by(self, seconds: float) -> None:
        self.bench.clock.pass_by(seconds)
        for _ in range(200):
            if self.bench.engine.due_in(self.bench.now) != 0.0:
                return
            self.bench.tick(3)
        raise AssertionError("the timer does not come to rest")


def limits(state: EngineState) -> object:
    held = {each: (list(wait.held), wait.freed) for each, wait in state.rate_index.waits.items() if wait.held}
    return state.rates, list(state.rate_index.names), held


def within(times: list[float], count: int, per_s: float) -> bool:
    """Whether every span has at most `count + T * count / per_s` of these times."""
    return all(
        last - first + 1 <= count + (times[last] - times[first]) * count / per_s + 1e-5
        for first in range(len(times))
        for last in range(first, len(times))
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=60))
def test_no_limit_is_exceeded_and_no_job_is_forgotten(acts: list[tuple[object, ...]]) -> None:
    run = Run()
    for name, *arguments in acts:
        getattr(run, "pass_by" if name == "pass" else str(name))(*arguments)
        invariants.check(run.bench.state)
    assert limits(run.bench.replayed) == limits(run.bench.state)
    leases = [event for event in run.bench.events if isinstance(event, Leased)]
    assert within([event.began for event in leases if event.kind == "mail"], 3, 10.0)
    assert within([event.began for event in leases if event.queue == "q"], 5, 20.0)
    for _ in range(200):
        run.pass_by(30.0)
        for queue in QUEUES:
            run.lease((queue,))
        waiting = [job for job in run.bench.state.jobs.values() if job.state in (State.READY, State.HELD)]
        if not waiting:
            break
        while any(job.lease is not None for job in run.bench.state.jobs.values()):
            run.settle(True)
    assert not waiting, "each job is leased at last"
