"""Transactions: all steps or none, later steps see earlier ones, and used numbers stay used."""

from time import process_time

import pytest

from crossdock.model.commands.core import (
    Claim,
    DrawNumbers,
    Fail,
    LeaseNext,
    LeaseTerms,
    Succeed,
    Transacted,
    Transaction,
)
from crossdock.model.events import NumbersDrawn, Pushed, Succeeded
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Extra, Form, Job, LeaseBinding, Links, Number, Spec
from crossdock.model.policies import Backoff, Disposition, Policy
from crossdock.model.states import State
from tests.model.bench import Bench, held

RULES = Policy(3, 0, 0, Backoff.QUARTIC, Disposition.DEAD_QUEUE, due_band=0)
FOR_EVER = LeaseTerms(float("inf"), float("inf"), float("inf"), LeaseBinding.CONNECTION)


def spec(jid: str, *depends_on: Number) -> Spec:
    return Spec(
        jid,
        "q",
        "kind",
        b"",
        Form.NONE,
        0,
        RULES,
        0.0,
        Extra(links=Links(depends_on=depends_on)) if depends_on else None,
    )


def transact(bench: Bench, *steps: Spec | Succeed) -> Transacted:
    return bench.do(Transaction("masenko", steps))


def lease(bench: Bench) -> Job:
    job = bench.do(LeaseNext("masenko", ("q",), "", FOR_EVER))
    assert job is not None
    return job


def ack(job: Job) -> Succeed:
    return Succeed(job.jid, Claim("masenko", "", held(job)))


def test_the_steps_are_one_journal_entry_in_their_order(bench: Bench) -> None:
    bench.do(Transaction("masenko", [spec("a")]))
    a = lease(bench)
    assert transact(bench, spec("b"), spec("c"), ack(a), spec("d")) == Transacted([2, 3, 4])
    assert [type(event) for event in decode_entry(bench.batches[-1]).events] == [Pushed, Succeeded, Pushed]
    assert bench.ready_queues == ("q",)
    assert bench.work_order("q") == ["b", "c", "d"]


def test_a_success_without_a_lease_undoes_it_all_but_the_numbers(bench: Bench) -> None:
    transact(bench, spec("a"), spec("b"))
    a, b = lease(bench), lease(bench)
    bench.do(Fail("b", Claim("masenko", "", held(b)), "", ""))
    over = Succeed("b", Claim("masenko", "", (2, 2)))
    assert transact(bench, spec("c"), ack(a), spec("d"), over, spec("e")) == Transacted([], 3)
    assert isinstance(bench.last, NumbersDrawn)
    assert (bench.state.counters.number, sorted(bench.state.jobs)) == (4, [1, 2])
    assert bench.job(1).state is State.LEASED
    assert transact(bench, over) == Transacted([], 0)
    assert transact(bench, spec("f")) == Transacted([5])


def test_dependencies_by_distance_count_pushes_only(bench: Bench) -> None:
    transact(bench, spec("x"))
    x = lease(bench)
    assert transact(bench, spec("a"), ack(x), spec("b", -1), spec("c", -2, -1), spec("d", -9)) == Transacted(
        [2, 3, 4, 5]
    )
    assert [bench.job(number).state for number in (2, 3, 4, 5)] == [
        State.READY,
        State.BLOCKED,
        State.BLOCKED,
        State.READY,
    ]
    assert bench.state.dependents == {2: {3: None, 4: None}, 3: {4: None}}


@pytest.mark.parametrize("ack_first", [True, False])
def test_later_steps_see_earlier_ones(bench: Bench, ack_first: bool) -> None:
    transact(bench, spec("a"))
    a = lease(bench)
    steps = (ack(a), spec("b", a.number)) if ack_first else (spec("b", a.number), ack(a))
    assert transact(bench, *steps) == Transacted([2])
    assert bench.job(2).state is State.READY
    assert lease(bench).jid == "b"


def test_a_freed_dependent_joins_its_queue_before_the_next_step(bench: Bench) -> None:
    transact(bench, spec("a"), spec("b"))
    a, b = lease(bench), lease(bench)
    transact(bench, spec("old", a.number))
    transact(bench, spec("new", a.number, b.number), spec("before"), ack(b), ack(a), spec("after"))
    assert bench.work_order("q") == ["before", "old", "new", "after"]


def test_the_same_success_twice_is_done_once(bench: Bench) -> None:
    transact(bench, spec("a"))
    a = lease(bench)
    assert transact(bench, ack(a), ack(a)) == Transacted([])
    assert bench.state.jobs == {}
    assert transact(bench) == Transacted([])


def test_drawn_numbers_are_not_used_for_jobs(bench: Bench) -> None:
    bench.do(DrawNumbers(3))
    bench.do(DrawNumbers(0))
    assert transact(bench, spec("a")) == Transacted([4])
    bench.restart()
    assert bench.state.counters.number == 4


def test_a_transaction_of_twenty_thousand_steps_succeeds(bench: Bench) -> None:
    transact(bench, *(spec(f"a{n}") for n in range(10_000)))
    jobs = [lease(bench) for _ in range(10_000)]
    started = process_time()
    transact(bench, *(step for job in jobs for step in (spec(f"b{job.number}", -1), ack(job))))
    assert process_time() - started < 5.0
    assert len(bench.state.jobs) == 10_000
    assert lease(bench).number == 10_001
