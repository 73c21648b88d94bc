"""Very many dependents of one job are resolved in slices, and other changes may come between two slices."""

from pathlib import Path
from typing import Any

import pytest

from crossdock.engine.index import dependents
from crossdock.journal.snapshot import file
from crossdock.model.commands import qless as m
from crossdock.model.commands.admin import Bury, Flush, Remove, Reroute
from crossdock.model.commands.core import Claim, Enqueue, Fail, ResolveDependents, Start, Succeed, Transaction
from crossdock.model.events import DependentsPostponed, DependentsResolved, Failed, Readied, Succeeded
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Extra, Form, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, Ending, Policy
from crossdock.model.states import State
from tests.model import invariants
from tests.model.bench import Bench, held
from tests.model.rig import fold
from tests.support.picture import picture
from tests.support.steps import steps

#: A policy of Masenko
RULES = Policy(0, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0)

ANY = frozenset(State)


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependents, "AT_ONCE", 3)


def push(bench: Bench, jid: str, *depends_on: Number, deadqueue: str = "", many: int = 1) -> list[Number]:
    """Push `many` jobs with these dependencies, and return their numbers."""
    extra = Extra(links=Links(depends_on=depends_on), deadqueue=deadqueue)
    names = [jid] if many == 1 else [f"{jid}{n}" for n in range(many)]
    specs = [Spec(name, "default", "kind", b"", Form.NONE, 0, RULES, 0.0, extra) for name in names]
    bench.do(Enqueue("masenko", specs))
    last = bench.state.counters.number
    return list(range(last - many + 1, last + 1))


def slice_of(bench: Bench, limit: int = 4) -> int:
    """Resolve a slice. The state is consistent after it, and the journal and a snapshot give the same state."""
    looked = bench.do(ResolveDependents(limit))
    check(bench)
    return looked


def check(bench: Bench) -> None:
    invariants.check(bench.state)
    assert picture(bench.replayed) == picture(bench.state)


def finish(bench: Bench, limit: int = 4) -> int:
    slices = 0
    while bench.state.unresolved:
        assert slice_of(bench, limit)
        slices += 1
    return slices


def states(bench: Bench, numbers: list[Number]) -> list[State]:
    return [bench.job(number).state if number in bench.state.jobs else State.GONE for number in numbers]


def put(bench: Bench, jid: str, t: float = 1.0, **more: Any) -> Number:
    bench.do(m.Put("qless", t, "w", jid, "default", "k", b"{}", Form.JSON, **more))
    return [job.number for job in bench.state.named(jid)][-1]


def complete(bench: Bench, jid: str, t: float = 3.0) -> None:
    bench.do(m.Pop("qless", t, "default", "w", 1, 60.0))
    [number] = [job.number for job in bench.state.named(jid)]
    bench.do(Succeed(jid, Claim("qless", "w", held(bench.job(number))), t=t))


def test_a_success_with_many_dependents_is_a_journal_entry_of_its_own(bench: Bench) -> None:
    [a] = push(bench, "a")
    many = push(bench, "j", a, many=10)
    bench.lease()
    bench.succeed("a")
    events = decode_entry(bench.batches[-1]).events
    assert [type(event) for event in events] == [DependentsPostponed, Succeeded]
    assert states(bench, many) == [State.BLOCKED] * 10
    assert bench.engine.due_in(bench.now) == 0.0, "the timer goes on with them"
    assert slice_of(bench) == 4
    assert states(bench, many) == [State.READY] * 4 + [State.BLOCKED] * 6
    assert bench.ready_queues == ("default",), "clients that wait for a job are woken"
    events = decode_entry(bench.batches[-1]).events
    assert [type(event) for event in events] == [DependentsResolved, Readied]
    assert finish(bench) == 2
    assert bench.work_order() == [f"j{n}" for n in range(10)]
    assert bench.do(ResolveDependents(4)) == 0


def test_up_to_the_limit_dependents_follow_in_the_same_journal_entry(bench: Bench) -> None:
    [a] = push(bench, "a")
    many = push(bench, "j", a, many=3)
    bench.lease()
    bench.succeed("a")
    assert not bench.state.unresolved
    assert states(bench, many) == [State.READY] * 3


def test_the_step_that_ends_a_job_costs_the_same_however_many_wait_for_it() -> None:
    few, many = (_steps_to_succeed(waiting) for waiting in (10, 2_000))
    assert many == few


def _steps_to_succeed(waiting: int) -> int:
    bench = Bench()
    [a] = push(bench, "a")
    push(bench, "j", a, many=waiting)
    bench.lease()
    count, _ = steps(lambda: bench.engine.execute(Succeed("a", Claim("faktory", "w")), bench.now))
    assert len(bench.state.unresolved[a, Ending.SUCCESS].waiting) == waiting
    return count


def test_a_dependent_with_another_dependency_waits_on(bench: Bench) -> None:
    [a], [b] = push(bench, "a"), push(bench, "b")
    both = push(bench, "j", a, b, many=10)
    bench.lease()
    bench.lease()
    bench.succeed("a")
    slice_of(bench)
    bench.succeed("b")
    assert len(bench.state.unresolved) == 2
    slice_of(bench)
    assert State.READY in states(bench, both)
    finish(bench)
    assert states(bench, both) == [State.READY] * 10


@pytest.mark.parametrize("first", ["met", "lost"])
def test_one_dependency_is_met_and_another_lost_before_the_dependent_is_resolved(bench: Bench, first: str) -> None:
    [a], [b] = push(bench, "a"), push(bench, "b")
    both = push(bench, "j", a, b, many=10)
    bench.lease()
    bench.lease()
    if first == "met":
        bench.succeed("a")
        bench.fail("b")
    else:
        bench.fail("b")
        bench.succeed("a")
    finish(bench)
    assert states(bench, both) == [State.GONE] * 10


@pytest.mark.parametrize("how", ["failed", "removed", "buried"])
def test_many_dependents_of_a_lost_job_fail_in_slices(bench: Bench, how: str) -> None:
    [a] = push(bench, "a")
    many = push(bench, "j", a, deadqueue="dead", many=10)
    if how == "failed":
        bench.lease()
        bench.fail("a")
    elif how == "removed":
        bench.do(Remove("control", "discarded", [a], ANY))
    else:
        bench.do(Bury("control", [a]))
    check(bench)
    assert states(bench, many) == [State.BLOCKED] * 10
    slice_of(bench)
    assert "dead" in bench.ready_queues
    finish(bench)
    assert bench.work_order("dead") == [f"j{n}" for n in range(10)]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_slices_fail_depth_first_as_one_step_would(bench: Bench, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Bench()
    for each in (bench, whole):
        [a] = push(each, "a")
        firsts = push(each, "b", a, many=5)
        for n, first in enumerate(firsts):
            [second] = push(each, f"c{n}", first)
            push(each, f"d{n}-", second, a, many=4)
        each.lease()
    bench.fail("a")
    check(bench)
    finish(bench, limit)
    monkeypatch.setattr(dependents, "AT_ONCE", 1_000)
    whole.fail("a")
    order = [[event.jid for event in each.events if isinstance(event, Failed)] for each in (bench, whole)]
    assert order[0] == order[1]
    assert len(order[0]) == 1 + 5 + 5 + 20


@pytest.mark.parametrize("limit", [1, 7, 500])
def test_a_chain_of_failures_is_cut_in_slices(bench: Bench, limit: int) -> None:
    linked = Extra(links=Links(depends_on=(-1,)))
    specs = [Spec(f"j{n}", "default", "kind", b"", Form.NONE, 0, RULES, 0.0, linked if n else None) for n in range(40)]
    bench.do(Enqueue("masenko", specs))
    bench.lease()
    bench.fail("j0")
    assert len(bench.state.jobs) == 40 - 1 - 3
    while bench.state.unresolved:
        left = len(bench.state.jobs)
        slice_of(bench, limit)
        assert left - len(bench.state.jobs) <= limit
        assert len(bench.state.unresolved) <= 1
    assert bench.state.jobs == {}


@pytest.mark.parametrize("how", ["replay", "snapshot"])
def test_a_restart_between_two_slices_goes_on_with_the_rest(bench: Bench, how: str, tmp_path: Path) -> None:
    [a], [b] = push(bench, "a"), push(bench, "b")
    freed, lost = push(bench, "f", a, many=10), push(bench, "l", b, many=10)
    bench.lease()
    bench.lease()
    bench.succeed("a")
    bench.fail("b")
    slices = 0
    while bench.state.unresolved:
        slice_of(bench, 3)
        slices += 1
        state = fold(bench.batches)
        if how == "snapshot":
            file.write(tmp_path / "snapshot", bench.state, 1, 1.0, 1.0)
            state = file.load(tmp_path / "snapshot").state
        assert picture(state) == picture(bench.state)
        bench.adopt(state)
        bench.do(Start())
    assert slices > 4
    assert states(bench, freed) == [State.READY] * 10
    assert states(bench, lost) == [State.GONE] * 10


@pytest.mark.parametrize("act", ["remove", "bury", "reroute", "succeed", "fail", "flush"])
def test_a_dependent_that_changed_before_its_slice_is_left_alone(bench: Bench, act: str) -> None:
    [a] = push(bench, "a")
    many = push(bench, "j", a, many=10)
    [last] = push(bench, "last", many[7])
    bench.lease()
    bench.succeed("a")
    slice_of(bench)
    touched, free = many[7], Claim("masenko", "", free=True)
    if act == "remove":
        bench.do(Remove("control", "discarded", [touched], ANY))
    elif act == "bury":
        bench.do(Bury("control", [touched]))
    elif act == "reroute":
        bench.do(Reroute("control", "elsewhere", [touched]))
    elif act == "succeed":
        bench.do(Succeed("j7", free))
    elif act == "fail":
        bench.do(Fail("j7", free, "", ""))
    else:
        bench.do(Flush("control"))
        assert not bench.state.unresolved
        return
    check(bench)
    finish(bench)
    rest = [number for number in many if number != touched]
    assert states(bench, rest) == [State.READY] * 9
    state = {"bury": State.DEAD, "reroute": State.READY}.get(act, State.GONE)
    assert states(bench, [touched]) == [state]
    after = {"succeed": State.READY, "reroute": State.BLOCKED}.get(act, State.GONE)
    assert states(bench, [last]) == [after]


def test_a_job_that_is_put_again_before_its_dependents_know_does_not_keep_or_catch_them(bench: Bench) -> None:
    dependency = put(bench, "need")
    old = [put(bench, f"old{n}", depends_on=["need"]) for n in range(10)]
    complete(bench, "need")
    assert put(bench, "need", 4.0) == dependency, "qless goes on under the same number"
    new = [put(bench, f"new{n}", 5.0, depends_on=["need"]) for n in range(2)]
    check(bench)
    slice_of(bench)
    finish(bench)
    assert states(bench, old) == [State.READY] * 10
    assert states(bench, new) == [State.BLOCKED] * 2
    assert set(bench.state.dependents) == {dependency}


def test_a_job_that_ends_twice_before_its_dependents_know_frees_all_of_them(bench: Bench) -> None:
    put(bench, "need", priority=9)
    old = [put(bench, f"old{n}", depends_on=["need"]) for n in range(10)]
    complete(bench, "need")
    put(bench, "need", 4.0, priority=9)
    new = [put(bench, f"new{n}", 5.0, depends_on=["need"]) for n in range(6)]
    complete(bench, "need", 6.0)
    finish(bench)
    assert states(bench, old + new) == [State.READY] * 16


def test_a_dependent_that_is_put_again_waits_for_what_it_names_now(bench: Bench) -> None:
    dependency = put(bench, "need")
    many = [put(bench, f"j{n}", depends_on=["need"]) for n in range(10)]
    complete(bench, "need")
    put(bench, "j7", 4.0)
    check(bench)
    put(bench, "need", 5.0)
    put(bench, "j8", 6.0, depends_on=["need"])
    check(bench)
    assert states(bench, many[7:9]) == [State.READY, State.BLOCKED]
    finish(bench)
    assert states(bench, many) == [State.READY] * 8 + [State.BLOCKED, State.READY]
    assert bench.state.dependents == {dependency: {many[8]: None}}


def test_dependencies_may_be_edited_before_the_dependent_is_resolved(bench: Bench) -> None:
    put(bench, "need")
    other = put(bench, "other", priority=-1)
    many = [put(bench, f"j{n}", depends_on=["need"]) for n in range(10)]
    complete(bench, "need")
    for number, more in ((many[6], (other,)), (many[7], ())):
        unmet = dependents.unmet(bench.state, bench.job(number))
        assert unmet == ()
        bench.do(m.EditDependencies("qless", 4.0, number, (*unmet, *more)))
        check(bench)
    bench.do(m.SetPriority("qless", 5.0, many[8], 7))
    check(bench)
    finish(bench)
    assert states(bench, many) == [State.READY] * 6 + [State.BLOCKED] + [State.READY] * 3


def test_a_new_job_does_not_wait_for_one_that_ended(bench: Bench) -> None:
    [a] = push(bench, "a")
    push(bench, "j", a, many=10)
    bench.lease()
    bench.succeed("a")
    [new] = push(bench, "new", a)
    assert states(bench, [new]) == [State.READY]


def test_a_failed_job_of_qless_keeps_its_dependents_whatever_their_number(bench: Bench) -> None:
    dependency = put(bench, "need")
    many = [put(bench, f"j{n}", depends_on=["need"]) for n in range(10)]
    strict = push(bench, "strict", dependency, many=5)
    bench.do(m.Pop("qless", 2.0, "default", "w", 1, 60.0))
    claim = Claim("qless", "w", held(bench.job(dependency)))
    bench.do(Fail("need", claim, "group", "message", t=3.0, final=True))
    finish(bench)
    assert states(bench, many) == [State.BLOCKED] * 10
    assert states(bench, strict) == [State.GONE] * 5
    bench.do(Remove("control", "discarded", [dependency], ANY))
    finish(bench)
    assert states(bench, many) == [State.FAILED] * 10


def test_a_transaction_postpones_what_it_cannot_free_itself(bench: Bench) -> None:
    a, b = push(bench, "a", many=2)
    few, many = push(bench, "few", a, many=2), push(bench, "many", b, many=5)
    given = [held(bench.lease()) for _ in range(2)]
    acks = [Succeed("", Claim("masenko", "", each)) for each in given]
    new = Spec("new", "default", "kind", b"", Form.NONE, 0, RULES, 0.0, Extra(links=Links(depends_on=(a, b))))
    bench.do(Transaction("masenko", [new, *acks]))
    check(bench)
    newest = bench.state.counters.number
    assert states(bench, few) == [State.READY] * 2
    assert states(bench, [*many, newest]) == [State.BLOCKED] * 6
    finish(bench)
    assert states(bench, [*many, newest]) == [State.READY] * 6
