"""Dependencies: met or lost in the change that ends the other job; dead queues."""

from time import process_time

import pytest

from crossdock.engine.index import dependents
from crossdock.model.commands.admin import Bury, Remove
from crossdock.model.commands.core import Claim, Enqueue, Fail, ResolveDependents, Succeed, Verdict
from crossdock.model.commands.qless import Pop, Put
from crossdock.model.events import Failed, Readied, Scheduled
from crossdock.model.job import Extra, Form, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, Policy
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import Bench, held
from tests.support.picture import picture
from tests.support.steps import steps

#: A policy of Masenko
RULES = Policy(0, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0)


def push(
    bench: Bench, jid: str, *depends_on: Number, deadqueue: str = "", due: float = 0.0, policy: Policy = RULES
) -> Number:
    extra = Extra(links=Links(depends_on=depends_on), deadqueue=deadqueue)
    bench.do(Enqueue("masenko", [Spec(jid, "default", "kind", b"", Form.NONE, 0, policy, due, extra)]))
    return bench.state.counters.number


def state(bench: Bench, number: Number) -> State:
    return bench.job(number).state if number in bench.state.jobs else State.GONE


def test_a_job_waits_for_all_dependencies_and_then_joins_the_tail(bench: Bench) -> None:
    a, b = push(bench, "a"), push(bench, "b")
    both = push(bench, "both", b, a, a)
    push(bench, "c")
    assert state(bench, both) is State.BLOCKED
    assert [bench.lease().jid for _ in range(3)] == ["a", "b", "c"]
    assert bench.nothing_to_lease()
    bench.succeed("a")
    assert state(bench, both) is State.BLOCKED
    bench.clock.pass_by(1.0)
    push(bench, "d")
    bench.clock.pass_by(1.0)
    bench.succeed("b")
    assert isinstance(bench.last, Readied)
    assert bench.last.why == "met"
    assert "default" in bench.ready_queues
    assert bench.work_order() == ["d", "both"]
    assert bench.state.dependents == {}


def test_a_dependency_that_failed_with_tries_left_still_counts(bench: Bench) -> None:
    a = push(bench, "a", policy=Policy(1, backoff=Backoff.QUARTIC))
    b = push(bench, "b", a)
    bench.lease()
    bench.fail("a")
    assert state(bench, b) is State.BLOCKED
    bench.after(1.0)
    bench.lease()
    bench.succeed("a")
    assert state(bench, b) is State.READY


def test_a_freed_job_with_a_future_due_time_is_scheduled(bench: Bench) -> None:
    a = push(bench, "a")
    b = push(bench, "b", a, due=bench.now.wall + 60.0)
    past = push(bench, "past", a, due=bench.now.wall + 1.0)
    bench.after(2.0)
    assert state(bench, b) is State.BLOCKED
    bench.lease()
    bench.succeed("a")
    assert isinstance(bench.last, Scheduled)
    assert (state(bench, b), state(bench, past)) == (State.SCHEDULED, State.READY)
    assert bench.job(past).sort_key == (0, 0, bench.now.wall - 1.0, b"", past)
    bench.after(58.0)
    assert state(bench, b) is State.READY


@pytest.mark.parametrize("how", ["never there", "gone", "complete", "failed", "dead", "in its dead queue"])
def test_a_job_does_not_wait_for_one_that_cannot_succeed(bench: Bench, how: str) -> None:
    policy = {
        "complete": Policy(0, success=Disposition.COMPLETE),
        "failed": Policy(0, exhausted=Disposition.FAILED),
        "dead": Policy(0, exhausted=Disposition.DEAD),
    }.get(how, RULES)
    a = push(bench, "a", policy=policy, deadqueue="dead" if how == "in its dead queue" else "")
    bench.lease()
    if how in ("gone", "complete"):
        bench.succeed("a")
    else:
        bench.fail("a")
    b = push(bench, "b", 99 if how == "never there" else a, 77)
    assert state(bench, b) is State.READY


def test_dependents_of_a_lost_job_fail_depth_first_in_push_order(bench: Bench) -> None:
    a = push(bench, "a", deadqueue="dead")
    b = push(bench, "b", a, deadqueue="dead")
    push(bench, "c", a, deadqueue="dead")
    d = push(bench, "d", b, deadqueue="dead", policy=Policy(20, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE))
    push(bench, "e", a, d, deadqueue="dead")
    dropped = push(bench, "dropped", d)
    free = push(bench, "free")
    bench.lease()
    so_far = len(bench.events)
    bench.fail("a")
    ends = [event for event in bench.events[so_far:] if isinstance(event, Failed)]
    assert [event.jid for event in ends] == ["a", "b", "d", "e", "dropped", "c"]
    assert len(bench.batches[-1]) > 0
    assert [(event.token > 0, event.counted) for event in ends] == [(True, True)] + [(False, False)] * 5
    assert state(bench, dropped) is State.GONE
    assert state(bench, free) is State.READY
    assert "dead" in bench.ready_queues
    assert bench.work_order("dead") == ["a", "b", "d", "e", "c"]
    assert bench.state.dependents == {}
    assert (bench.state.counters.processed, bench.state.counters.failures) == (1, 1)


def test_a_job_that_moved_to_its_dead_queue_is_as_if_new(bench: Bench) -> None:
    a = push(bench, "a", deadqueue="dead", policy=Policy(1, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE))
    bench.lease()
    bench.fail("a")
    bench.after(1.0)
    bench.lease()
    bench.clock.pass_by(5.0)
    bench.fail("a")
    job = bench.job(a)
    assert (job.queue, job.failures, job.attempts, job.state) == ("dead", 0, 2, State.READY)
    assert job.extra is not None
    assert job.extra.deadqueue == ""
    assert list(bench.state.queues) == ["default", "dead"]
    for seconds in (1.0, 0.0):
        assert bench.lease("dead").number == a
        bench.fail("a")
        bench.after(seconds)
    assert bench.state.jobs == {}


@pytest.mark.parametrize("how", ["removed", "buried", "expired"])
def test_a_removed_job_is_a_lost_dependency(bench: Bench, how: str) -> None:
    due = bench.now.wall + 60.0
    a = push(bench, "a", due=due)
    b = push(bench, "b", a)
    c = push(bench, "c", b, deadqueue="dead")
    if how == "removed":
        bench.do(Remove("faktory", "discarded", [a], frozenset({State.SCHEDULED})))
    elif how == "buried":
        bench.do(Bury("faktory", [a]))
    else:
        links = Links(expires=bench.now.wall + 1.0)
        [a] = bench.push("short", links=links)
        b = push(bench, "b", a)
        bench.do(Remove("faktory", "discarded", [c], frozenset({State.BLOCKED})))
        c = push(bench, "c", b, deadqueue="dead")
        bench.clock.pass_by(2.0)
        assert bench.nothing_to_lease()
    assert state(bench, b) is State.GONE
    assert (bench.job(c).queue, state(bench, c)) == ("dead", State.READY)


def test_a_blocked_job_can_be_removed(bench: Bench) -> None:
    a = push(bench, "a")
    b = push(bench, "b", a)
    c = push(bench, "c", b, a)
    bench.do(Remove("faktory", "discarded", [b], frozenset({State.BLOCKED})))
    assert state(bench, c) is State.GONE
    assert bench.state.dependents == {}
    bench.lease()
    bench.succeed("a")


def test_a_restart_in_between_changes_nothing(bench: Bench) -> None:
    a, b = push(bench, "a"), push(bench, "b")
    both = push(bench, "both", a, b)
    bench.lease()
    bench.succeed("a")
    bench.restart()
    assert state(bench, both) is State.BLOCKED
    bench.lease()
    bench.succeed("b")
    assert state(bench, both) is State.READY


def test_a_long_chain_fails_to_its_end(bench: Bench) -> None:
    """Far longer than the interpreter's stack is deep. Looking at all jobs for each of them would take minutes."""
    linked = Extra(links=Links(depends_on=(-1,)))
    specs = [
        Spec(f"j{n}", "default", "kind", b"", Form.NONE, 0, RULES, 0.0, linked if n else None) for n in range(20_000)
    ]
    started = process_time()
    bench.do(Enqueue("masenko", specs))
    bench.lease()
    bench.fail("j0")
    while bench.state.unresolved:
        bench.do(ResolveDependents(500))
    assert bench.state.jobs == {}
    assert process_time() - started < 30.0


@pytest.mark.parametrize("others", [0, 500], ids=["all that are blocked", "a few of them"])
@pytest.mark.parametrize("ends", ["met", "lost"])
def test_a_hundred_that_wait_for_one_job_follow_in_one_change(bench: Bench, ends: str, others: int) -> None:
    """In push order, from several queues. Jobs that wait for another job keep waiting."""
    a, z = push(bench, "a"), push(bench, "z")
    for n in range(others):
        push(bench, f"other{n}", z)
    extra = Extra(links=Links(depends_on=(a,)))
    specs = [Spec(f"j{n}", f"q{n % 3}", "kind", b"", Form.NONE, 0, RULES, 0.0, extra) for n in range(99)]
    bench.do(Enqueue("masenko", specs))
    both = push(bench, "both", a, z)
    bench.lease()
    before = len(bench.events)
    if ends == "met":
        bench.succeed("a")
        _, readied = bench.events[before:]
        assert isinstance(readied, Readied)
        assert [row.jid for row in readied.rows] == [spec.jid for spec in specs]
        assert [bench.lease("q1").jid for _ in range(3)] == ["j1", "j4", "j7"]
    else:
        bench.do(Remove("control", "discarded", [a], frozenset({State.LEASED})))
        assert len(bench.events) - before == 1 + 99 + 1, "each has a failure of its own"
    assert state(bench, both) is (State.BLOCKED if ends == "met" else State.GONE)
    assert len(bench.state.by_state[State.BLOCKED]) == others + (ends == "met")
    invariants.check(bench.state)
    assert picture(bench.replayed) == picture(bench.state)


def test_a_protocol_that_settles_without_lease_may_settle_a_blocked_job(bench: Bench) -> None:
    a = push(bench, "a")
    b = push(bench, "b", a)
    c = push(bench, "c", b)
    assert bench.do(Succeed("b", Claim("masenko", "", free=True))) is Verdict.DONE
    assert state(bench, c) is State.READY
    assert bench.do(Fail("a", Claim("masenko", "", free=True), "", "")) is Verdict.DONE
    assert bench.state.dependents == {}
    assert held(bench.lease())[0] == c


def test_a_ready_job_may_go_to_its_dead_queue_as_well(bench: Bench) -> None:
    a = push(bench, "a", deadqueue="dead")
    assert bench.do(Fail("a", Claim("masenko", "", free=True), "", "")) is Verdict.DONE
    assert bench.ready_queues == ("dead",)
    assert bench.nothing_to_lease()
    assert bench.lease("dead").number == a


def test_a_freed_job_comes_after_jobs_pushed_at_the_same_time(bench: Bench) -> None:
    a = push(bench, "a", deadqueue="default")
    b = push(bench, "b")
    push(bench, "met", b)
    bench.lease()
    bench.lease()
    push(bench, "younger")
    bench.succeed("b")
    bench.fail("a")
    assert bench.job(a).since == pytest.approx(bench.now.wall)
    assert bench.work_order() == ["younger", "met", "a"]


@pytest.mark.parametrize(("protocol", "most"), [("masenko", 500), ("qless", 580)])
def test_a_job_that_is_freed_with_many_others_costs_little(
    protocol: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one change, during which no other request is served."""
    monkeypatch.setattr(dependents, "AT_ONCE", 1_000)
    few, many = (_steps_to_free(protocol, waiting) for waiting in (200, 700))
    assert (many - few) / 500 < most


def _steps_to_free(protocol: str, waiting: int) -> int:
    bench = Bench()
    if protocol == "qless":
        bench.do(Put("qless", 1.0, "w", "need", "default", "k", b"{}", Form.JSON))
        for n in range(waiting):
            bench.do(Put("qless", 1.0, "w", f"j{n}", "default", "k", b"{}", Form.JSON, depends_on=("need",)))
        bench.do(Pop("qless", 2.0, "default", "w", 1, 60.0))
    else:
        bench.push("need")
        bench.push(*(f"j{n}" for n in range(waiting)), links=Links(depends_on=(1,)))
        bench.lease()
    claim = Claim("qless" if protocol == "qless" else "faktory", "w")
    count, _ = steps(lambda: bench.engine.execute(Succeed("need", claim, t=3.0), bench.now))
    assert len(bench.state.queues["default"].ready) == waiting
    return count
