"""Failures: how long until the next try, when tries end, and what an expired lease means."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.engine.jobs.retry_policy import delay
from crossdock.model.commands.admin import Bury, Requeue
from crossdock.model.commands.core import LeaseTerms
from crossdock.model.events import Failed, LeaseExpired
from crossdock.model.job import Failure
from crossdock.model.policies import Backoff, Disposition, LeaseExpiry, Policy
from crossdock.model.states import State
from tests.model.bench import Bench, held
from tests.model.rig import Die

DAY = 86_400.0


@given(st.integers(0, 1_000), st.integers(0, 29))
def test_faktory_backoff_grows_with_the_fourth_power_of_failures(count: int, jitter: int) -> None:
    die = Die()
    die.value = jitter
    assert delay(Backoff.POLYNOMIAL, count, die) == count**4 + 15 + jitter * (count + 1)


@pytest.mark.parametrize("count", [0, 1, 5, 24])
def test_faktory_jitter_takes_every_value_from_0_to_29(count: int) -> None:
    random = Random(1)
    found = {delay(Backoff.POLYNOMIAL, count, random) for _ in range(2_000)}
    assert found == {float(count**4 + 15 + jitter * (count + 1)) for jitter in range(30)}


@pytest.mark.parametrize(("backoff", "count", "seconds"), [
    (Backoff.NONE, 0, 0.0),
    (Backoff.NONE, 9, 0.0),
    (Backoff.QUARTIC, 0, 1.0),  # Masenko counts the failure that is being reported
    (Backoff.QUARTIC, 1, 16.0),
    (Backoff.QUARTIC, 4, 625.0),
])  # fmt: skip
def test_backoff_of_masenko_and_workq(backoff: Backoff, count: int, seconds: float) -> None:
    assert delay(backoff, count, Random(1)) == seconds


@pytest.mark.parametrize(("policy", "failures", "end"), [
    (Policy(5, backoff=Backoff.QUARTIC, exhausted=Disposition.DEAD), 5, State.DEAD),
    (Policy(1, backoff=Backoff.QUARTIC, exhausted=Disposition.DEAD), 1, State.DEAD),
    (Policy(2, backoff=Backoff.QUARTIC, exhausted=Disposition.GONE), 2, State.GONE),
    (Policy(0, exhausted=Disposition.GONE), 0, State.GONE),  # Faktory `retry` 0
    (Policy(-1, exhausted=Disposition.DEAD), 0, State.DEAD),  # Faktory `retry` below 0
])  # fmt: skip
def test_a_job_is_retried_as_often_as_its_policy_allows(
    bench: Bench, policy: Policy, failures: int, end: State
) -> None:
    [number] = bench.push("poison", policy=policy)
    bench.push("next in line")
    for attempt in range(1, failures + 1):
        assert bench.lease().attempts == attempt
        assert bench.fail("poison")
        assert bench.job(number).state is State.RETRYING
        bench.after(float(attempt**4))
        bench.push("next in line")
        while bench.state.queues["default"].ready.first()[4] != number:
            assert bench.lease().jid == "next in line", "the queue keeps flowing"
    assert bench.lease().attempts == failures + 1
    assert bench.fail("poison")
    assert isinstance(bench.last, Failed)
    assert bench.last.then is end
    assert (number in bench.state.jobs) == (end is State.DEAD)


def test_a_dead_job_is_purged_after_180_days(bench: Bench) -> None:
    [number] = bench.push("a", policy=Policy(-1, exhausted=Disposition.DEAD))
    bench.lease()
    bench.fail("a")
    assert bench.after(180 * DAY - 0.001).purged == 0
    assert number in bench.state.jobs
    assert bench.after(0.001).purged == 1
    assert bench.state.jobs == {}


def test_burying_again_keeps_a_dead_job_longer(bench: Bench) -> None:
    [number] = bench.push("a", due=bench.now.wall + 9_999.0)
    bench.do(Bury("faktory", [number]))
    bench.clock.pass_by(100 * DAY)
    bench.do(Bury("faktory", [number]))
    assert bench.after(179 * DAY).purged == 0
    assert bench.after(1 * DAY).purged == 1


def test_a_dead_job_that_is_requeued_and_fails_again_is_dead_again(bench: Bench) -> None:
    [number] = bench.push("a", policy=Policy(0, exhausted=Disposition.DEAD))
    for failures in (1, 2):
        bench.lease()
        bench.fail("a")
        assert (bench.job(number).state, bench.job(number).failures) == (State.DEAD, failures)
        bench.do(Requeue("faktory", [number]))
    assert bench.lease().attempts == 3


def test_a_failure_records_its_error_and_its_times(bench: Bench) -> None:
    begin = bench.now.wall
    bench.die.value = 2
    [number] = bench.push("a", policy=Policy(1, 0, 0, Backoff.POLYNOMIAL, Disposition.DEAD))

    def error() -> Failure:
        extra = bench.job(number).extra
        assert extra is not None
        assert extra.error is not None
        return extra.error

    bench.lease()
    bench.fail("a")
    assert error() == Failure("Group", "message", ("line",), begin, begin, begin + 17.0, False)
    bench.after(17.0)
    bench.lease()
    bench.fail("a")
    assert error() == Failure("Group", "message", ("line",), begin, begin + 17.0, begin + 17.0, False), (
        "a dead job shows the last try that was planned"
    )


@pytest.mark.parametrize("jump", [-3_600.0, 3_600.0])
def test_a_retry_waits_by_the_steady_clock(bench: Bench, jump: float) -> None:
    bench.push("a")
    bench.clock.jump(jump)
    bench.lease()
    bench.fail("a")
    assert bench.after(14.999).retried == 0
    assert bench.after(0.001).retried == 1


# Expired leases


def test_a_lease_ends_at_its_end_and_not_before(bench: Bench) -> None:
    bench.push("a")
    bench.lease()
    assert bench.after(1_799.999).expired == 0
    assert bench.after(0.001).expired == 1


@pytest.mark.parametrize(
    ("own", "lasts"), [(0, 1_800.0), (1, 60.0), (59, 60.0), (60, 60.0), (90, 90.0), (1e9, 86_400.0)]
)
def test_a_lease_lasts_as_the_job_asks_within_the_protocols_limits(bench: Bench, own: float, lasts: float) -> None:
    bench.push("a", policy=Policy(1, 0, own))
    job = bench.lease(terms=LeaseTerms(1_800.0, 60.0, 86_400.0))
    assert job.lease is not None
    assert job.lease.end - bench.now.steady == lasts


def test_an_expired_lease_is_a_lost_failure(bench: Bench) -> None:
    [number] = bench.push("a")
    bench.lease()
    bench.after(1_800.0)
    assert isinstance(bench.last, Failed)
    assert bench.last.lost
    assert bench.last.via == ""
    assert bench.job(number).state is State.RETRYING
    assert (bench.job(number).attempts, bench.job(number).failures) == (1, 1)
    assert (bench.state.counters.processed, bench.state.counters.failures) == (1, 1)


def test_an_expired_lease_is_no_failure_if_the_policy_returns_the_job(bench: Bench) -> None:
    [number] = bench.push("a", policy=Policy(3, lease_expiry=LeaseExpiry.RETURN))
    bench.lease()
    bench.after(1_800.0)
    assert isinstance(bench.last, LeaseExpired)
    assert bench.job(number).state is State.READY
    assert (bench.job(number).attempts, bench.job(number).failures) == (1, 0)
    assert (bench.state.counters.processed, bench.state.counters.failures) == (0, 0)


@pytest.mark.parametrize("lease_expiry", [LeaseExpiry.FAILURE, LeaseExpiry.RETURN])
def test_expired_leases_end_a_job_after_max_attempts(bench: Bench, lease_expiry: LeaseExpiry) -> None:
    [number] = bench.push(
        "a", policy=Policy(9, 2, backoff=Backoff.QUARTIC, exhausted=Disposition.DEAD, lease_expiry=lease_expiry)
    )
    states = []
    for _ in range(2):
        bench.lease()
        bench.after(1_800.0)
        states.append(bench.job(number).state)
        bench.after(1.0)
    assert states == [State.RETRYING if lease_expiry is LeaseExpiry.FAILURE else State.READY, State.DEAD]


def test_a_worker_cannot_settle_after_its_lease_expired(bench: Bench) -> None:
    bench.push("a", policy=Policy(3, lease_expiry=LeaseExpiry.RETURN))
    late = held(bench.lease(worker="slow"))
    bench.after(1_800.0)
    bench.lease(worker="quick")
    assert not bench.succeed("a", "slow", late)
    assert not bench.fail("a", "slow", late)
    assert bench.succeed("a", "quick")


def test_a_late_worker_still_settles_before_the_expiry_is_evaluated(bench: Bench) -> None:
    """The timer decides that a lease has expired, not the clock alone."""
    bench.push("a")
    mine = held(bench.lease())
    bench.clock.pass_by(2_000.0)
    assert bench.succeed("a", "w", mine)
    assert bench.tick().expired == 0
