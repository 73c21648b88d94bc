"""Unique locks, and jobs that expire before they are leased."""

import pytest

from crossdock.model.commands.admin import Bury, Remove, Requeue
from crossdock.model.commands.core import Enqueue, LeaseTerms, Refused
from crossdock.model.events import Removed
from crossdock.model.job import LeaseBinding, Links, LockRelease, LockTerms
from crossdock.model.states import State
from tests.model.bench import Bench, held, spec

DAY = 86_400.0


def lock(bench: Bench, seconds: float = 600.0, freed: LockRelease = LockRelease.SUCCESS) -> Links:
    return Links(LockTerms("lock", bench.now.steady + seconds, freed))


def is_locked(bench: Bench) -> bool:
    refused = bench.do(Enqueue("faktory", [spec("other", links=lock(bench))]))
    return list(refused) == [Refused.NOT_UNIQUE]


def test_a_lock_admits_one_job(bench: Bench) -> None:
    bench.push("a", links=lock(bench))
    assert is_locked(bench)
    assert len(bench.state.jobs) == 1
    bench.push("without a lock")
    assert len(bench.state.jobs) == 2


def test_of_two_jobs_in_one_push_the_first_gets_the_lock(bench: Bench) -> None:
    specs = [spec("a", links=lock(bench)), spec("b"), spec("c", links=lock(bench))]
    assert list(bench.do(Enqueue("faktory", specs))) == [None, None, Refused.NOT_UNIQUE]
    assert [job.jid for job in bench.state.jobs.values()] == ["a", "b"]


@pytest.mark.parametrize(
    ("freed", "when", "locked"),
    [
        (LockRelease.SUCCESS, "leased", True),
        (LockRelease.SUCCESS, "given back", True),
        (LockRelease.SUCCESS, "failed", True),
        (LockRelease.SUCCESS, "dead", True),
        (LockRelease.SUCCESS, "succeeded", False),
        (LockRelease.SUCCESS, "removed", False),
        (LockRelease.START, "leased", False),
        (LockRelease.START, "given back", True),
        (LockRelease.START, "failed", False),
    ],
)
def test_a_lock_is_freed_as_its_terms_say(bench: Bench, freed: LockRelease, when: str, locked: bool) -> None:
    [number] = bench.push("a", links=lock(bench, freed=freed))
    lease = held(bench.lease())
    if when == "given back":
        bench.give_back(lease)
    elif when in ("failed", "dead", "removed"):
        bench.fail("a")
    elif when == "succeeded":
        bench.succeed("a")
    if when == "dead":
        bench.do(Bury("faktory", [number]))
    elif when == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.RETRYING})))
    assert is_locked(bench) is locked


def test_a_lock_until_start_is_not_held_again_by_one_that_did_start(bench: Bench) -> None:
    [number] = bench.push("a", links=lock(bench, freed=LockRelease.START))
    bench.lease()
    bench.fail("a")
    bench.do(Requeue("faktory", [number]))
    bench.give_back(held(bench.lease()))
    assert not is_locked(bench)


def test_a_lock_until_start_stays_with_the_job_that_took_it_meanwhile(bench: Bench) -> None:
    bench.push("a", links=lock(bench, freed=LockRelease.START))
    lease = held(bench.lease())
    [other] = bench.push("b", links=lock(bench))
    bench.give_back(lease)
    assert bench.state.locks["lock"].holder == other


def test_a_lock_until_start_is_held_again_after_a_restart(bench: Bench) -> None:
    bench.push("a", links=lock(bench, freed=LockRelease.START))
    bench.lease(terms=LeaseTerms(1_800.0, 60.0, 86_400.0, LeaseBinding.CONNECTION))
    bench.restart()
    assert is_locked(bench)


@pytest.mark.parametrize("back", ["restart", "give back", "one by one"])
def test_a_lock_until_start_that_is_over_is_not_in_the_way_of_the_next_ones(bench: Bench, back: str) -> None:
    bound = LeaseTerms(1_800.0, 60.0, 86_400.0, LeaseBinding.CONNECTION)
    bench.push("old", links=lock(bench, 10.0, LockRelease.START))
    leases = [held(bench.lease(terms=bound))]
    bench.clock.pass_by(5.0)
    [new] = bench.push("new", links=lock(bench, 600.0, LockRelease.START))
    leases.append(held(bench.lease(terms=bound)))
    if back == "one by one":  # the time of the first is not over when it returns
        bench.give_back(leases.pop(0))
        assert bench.state.locks["lock"].end == bench.now.steady + 5.0
    bench.clock.pass_by(6.0)
    if back == "restart":
        bench.restart()
    else:
        bench.give_back(*leases)
    assert bench.state.locks["lock"].holder == new
    assert is_locked(bench)


@pytest.mark.parametrize("looked", [True, False])
def test_a_lock_ends_by_the_steady_clock(bench: Bench, looked: bool) -> None:
    bench.push("a", links=lock(bench))
    bench.clock.jump(DAY)
    assert is_locked(bench)
    bench.clock.pass_by(600.0)
    if looked:
        bench.tick()
        assert bench.state.locks == {}
    assert not is_locked(bench)


def test_a_job_that_lost_its_lock_does_not_free_the_next_holders(bench: Bench) -> None:
    bench.push("a", links=lock(bench))
    bench.lease()
    bench.clock.pass_by(600.0)
    bench.push("b", links=lock(bench))
    bench.succeed("a")
    assert is_locked(bench)


def test_an_expired_job_is_dropped_when_it_would_be_leased(bench: Bench) -> None:
    bench.push("old", "old too", links=Links(expires=bench.now.wall + 10.0))
    bench.push("fresh")
    bench.clock.pass_by(10.0)
    assert bench.lease().jid == "fresh"
    [gone] = [event for event in bench.events if isinstance(event, Removed)]
    assert (gone.why, [row.jid for row in gone.rows]) == ("expired", ["old", "old too"])
    assert len(bench.state.jobs) == 1


def test_a_queue_of_expired_jobs_is_empty(bench: Bench) -> None:
    bench.push("old", links=Links(expires=bench.now.wall + 10.0))
    bench.push("next queue", queue="other")
    bench.clock.pass_by(10.0)
    assert bench.lease("default", "other").jid == "next queue"
    assert bench.nothing_to_lease()


def test_a_queue_of_expired_jobs_named_twice_is_emptied_once(bench: Bench) -> None:
    bench.push("old", links=Links(expires=bench.now.wall + 10.0))
    bench.push("next queue", queue="other")
    bench.clock.pass_by(10.0)
    assert bench.lease("default", "default", "other").jid == "next queue"
    assert len(bench.state.jobs) == 1


def test_a_job_is_leased_until_it_expires(bench: Bench) -> None:
    bench.push("a", links=Links(expires=bench.now.wall + 10.0))
    bench.clock.pass_by(9.999)
    assert bench.lease().jid == "a"
