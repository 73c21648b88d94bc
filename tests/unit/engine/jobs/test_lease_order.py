"""The order of leases: priority, then push order, due times, and the sort key that a lease keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.model.commands.admin import ForgetQueue, PauseQueues, Requeue, ResumeQueues
from crossdock.model.commands.core import LeaseTerms
from crossdock.model.job import LeaseBinding
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from tests.model.bench import Bench, held

RETURNS = Policy(3, 0, 0, Backoff.NONE, Disposition.DEAD, lease_expiry=LeaseExpiry.RETURN)


def test_jobs_are_leased_in_push_order(bench: Bench) -> None:
    for jid in "abc":
        bench.push(jid)
        bench.clock.pass_by(1.0)
    bench.push("d", "e")
    assert bench.work_order() == ["a", "b", "c", "d", "e"]


def test_jobs_are_leased_in_push_order_when_the_clock_goes_back(bench: Bench) -> None:
    bench.push("a")
    bench.clock.jump(-3_600.0)
    bench.push("b")
    bench.clock.jump(-3_600.0)
    bench.push("c")
    assert bench.work_order() == ["a", "b", "c"]


def test_a_higher_priority_is_leased_first(bench: Bench) -> None:
    for jid, priority in (("low", -4), ("normal", 0), ("half", 0.5), ("high", 4), ("normal too", 0)):
        bench.push(jid, priority=priority)
        bench.clock.pass_by(1.0)
    assert bench.work_order() == ["high", "half", "normal", "normal too", "low"]


@given(st.lists(st.sampled_from([-4, 0, 0.5, 4]), max_size=30))
def test_jobs_of_equal_priority_keep_push_order(priorities: list[float]) -> None:
    bench = Bench()
    for n, priority in enumerate(priorities):
        bench.push(str(n), priority=priority)
    expected = sorted(range(len(priorities)), key=lambda n: -priorities[n])
    assert bench.work_order() == [str(n) for n in expected]


def test_queues_are_asked_in_the_order_given(bench: Bench) -> None:
    bench.push("a1", "a2", queue="a")
    bench.push("b1", queue="b", priority=9)
    assert [bench.lease("b", "a").jid, bench.lease("b", "a").jid, bench.lease("b", "a").jid] == ["b1", "a1", "a2"]


def test_a_paused_queue_is_passed_over_and_keeps_its_order(bench: Bench) -> None:
    bench.push("a1", "a2", queue="a")
    bench.push("b1", queue="b")
    bench.do(PauseQueues(["a"]))
    assert bench.work_order("a", "b") == ["b1"]
    bench.do(ResumeQueues(["a"]))
    assert bench.ready_queues == ["a"]
    assert bench.work_order("a", "b") == ["a1", "a2"]


def test_nothing_is_leased_before_it_is_due(bench: Bench) -> None:
    bench.push("later", due=bench.now.wall + 10.0)
    assert bench.after(9.999).scheduled == 0
    assert bench.nothing_to_lease()
    assert bench.after(0.001).scheduled == 1
    assert list(bench.ready_queues) == ["default"]
    assert bench.lease().jid == "later"


@pytest.mark.parametrize("due_in", [0.0, -1.0, -86_400.0])
def test_a_job_that_is_already_due_is_ready_at_the_tail(bench: Bench, due_in: float) -> None:
    bench.push("first")
    bench.push("past", due=bench.now.wall + due_in)
    assert bench.work_order() == ["first", "past"]


def test_due_jobs_come_in_the_order_they_are_due(bench: Bench) -> None:
    begin = bench.now.wall
    for jid, due_in in (("third", 30.0), ("first", 10.0), ("second", 20.0), ("not yet", 99.0)):
        bench.push(jid, due=begin + due_in)
    assert bench.after(50.0).scheduled == 3
    assert bench.work_order() == ["first", "second", "third"]


def test_equal_due_times_come_in_the_order_of_arrival(bench: Bench) -> None:
    due = bench.now.wall + 5.0
    for jid in "abc":
        bench.push(jid, due=due)
    bench.after(5.0)
    assert bench.work_order() == ["a", "b", "c"]


def test_a_due_job_waits_since_its_due_time_however_late_the_timer(bench: Bench) -> None:
    begin = bench.now.wall
    [number] = bench.push("due", due=begin + 10.0)
    bench.clock.pass_by(15.0)
    bench.push("pushed meanwhile")
    bench.after(5.0)
    assert bench.job(number).since == begin + 10.0
    assert bench.work_order() == ["due", "pushed meanwhile"]


def test_many_due_jobs_become_ready_in_slices(bench: Bench) -> None:
    bench.push(*(str(n) for n in range(25)), due=bench.now.wall + 1.0)
    bench.clock.pass_by(1.0)
    ticks = [bench.tick(10) for _ in range(3)]
    assert [(each.scheduled, each.more) for each in ticks] == [(10, True), (10, True), (5, False)]
    assert bench.work_order() == [str(n) for n in range(25)]


def test_schedules_follow_the_wall_clock_and_leases_the_steady_one(bench: Bench) -> None:
    bench.push("leased")
    bench.push("scheduled", due=bench.now.wall + 3_600.0)
    bench.lease()
    bench.clock.jump(7_200.0)
    ticked = bench.tick()
    assert (ticked.scheduled, ticked.expired) == (1, 0), "the clock was set: an hour of leases has not passed"
    bench.clock.jump(-7_200.0)
    ticked = bench.after(1_800.0)
    assert (ticked.scheduled, ticked.expired) == (0, 1)


def test_a_job_scheduled_after_the_clock_was_set_back_waits_for_its_time(bench: Bench) -> None:
    """By the clock as it is now, even though events are still dated by the time it showed before."""
    bench.push("now")
    bench.clock.jump(-3_600.0)
    [number] = bench.push("in half an hour", due=bench.now.wall + 1_800.0)
    assert bench.job(number).state is State.SCHEDULED
    assert list(bench.ready_queues) == []
    assert bench.after(1_799.0).scheduled == 0
    assert bench.after(1.0).scheduled == 1


def test_due_in_returns_the_seconds_until_the_next_deadline(bench: Bench) -> None:
    assert bench.engine.due_in(bench.now) is None
    bench.push("scheduled", due=bench.now.wall + 5_000.0)
    assert bench.engine.due_in(bench.now) == 5_000.0
    bench.push("leased")
    bench.lease()
    assert bench.engine.due_in(bench.now) == 1_800.0
    bench.clock.pass_by(10_000.0)
    assert bench.engine.due_in(bench.now) == 0.0


# The sort key that a lease keeps

Bring = str


def bring_back(bench: Bench, how: Bring) -> None:
    """Lease the next job and return it without a failure."""
    terms = LeaseTerms(1_800.0, 60.0, 86_400.0, LeaseBinding.CONNECTION if how == "restart" else LeaseBinding.UNBOUND)
    job = bench.lease(terms=terms)
    if how == "give back":
        bench.give_back(held(job))
    elif how == "expire":
        assert bench.after(1_800.0).expired == 1
    else:
        bench.restart()


@pytest.mark.parametrize("how", ["give back", "expire", "restart"])
def test_a_job_that_returns_without_a_failure_keeps_its_order(bench: Bench, how: Bring) -> None:
    """Before the jobs that were pushed later, after jobs of a higher priority that were pushed meanwhile."""
    bench.push("a", policy=RETURNS)
    bench.clock.pass_by(1.0)
    bench.push("b", policy=RETURNS)
    sort_key = bench.job(1).sort_key
    bring_back(bench, how)
    bench.push("urgent", priority=1)
    assert bench.job(1).sort_key == sort_key
    assert bench.work_order() == ["urgent", "a", "b"]


@pytest.mark.parametrize(
    ("how", "attempts"),
    [("give back", 1), ("restart", 1), ("expire", 2)],  # at its next lease
)
def test_only_a_received_lease_counts_as_an_attempt(bench: Bench, how: Bring, attempts: int) -> None:
    bench.push("a", policy=RETURNS)
    bring_back(bench, how)
    assert bench.job(1).lease is None
    assert bench.job(1).failures == 0
    assert bench.lease().attempts == attempts


@pytest.mark.parametrize("how", ["give back", "expire", "restart"])
def test_a_job_that_returns_registers_its_queue_again(bench: Bench, how: Bring) -> None:
    """Its queue was forgotten while it was leased."""
    bench.push("a", policy=RETURNS)
    job = bench.lease(terms=LeaseTerms(1_800.0, 60.0, 86_400.0, LeaseBinding.CONNECTION))
    bench.do(ForgetQueue("default"))
    assert "default" not in bench.state.queues
    if how == "give back":
        bench.give_back(held(job))
    elif how == "expire":
        bench.after(1_800.0)
    else:
        bench.restart()
    assert bench.work_order() == ["a"]


def test_a_requeued_job_joins_the_tail(bench: Bench) -> None:
    [number] = bench.push("scheduled", due=bench.now.wall + 9_999.0)
    bench.push("ready")
    bench.clock.pass_by(1.0)
    assert bench.do(Requeue("faktory", [number])) == 1
    assert bench.job(number).state is State.READY
    assert bench.job(number).since == bench.now.wall
    assert bench.work_order() == ["ready", "scheduled"]


def test_a_retried_job_is_ordered_by_its_due_time(bench: Bench) -> None:
    bench.push("a", policy=Policy(3, 0, 0, Backoff.QUARTIC, Disposition.DEAD))
    bench.push("b")
    bench.lease()
    bench.fail("a")
    assert bench.after(1.0).retried == 1
    bench.push("c")
    assert bench.work_order() == ["b", "a", "c"]


def test_the_longest_waiting_job_is_found_among_all_priorities(bench: Bench) -> None:
    begin = bench.now.wall
    assert bench.state.queue("default", begin).oldest(bench.state.jobs) is None
    for priority in (0, 4, -4):
        bench.push(f"p{priority}", f"again p{priority}", priority=priority)
        bench.clock.pass_by(1.0)
    queue = bench.state.queues["default"]
    assert queue.oldest(bench.state.jobs) == begin
    assert bench.lease().jid == "p4"
    assert queue.oldest(bench.state.jobs) == begin
    for _ in range(3):
        bench.lease()
    assert queue.oldest(bench.state.jobs) == begin + 2.0
