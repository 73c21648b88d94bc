"""Which claims may settle a job (model.md section 6), and what a settlement does."""

from typing import Final

import pytest

from crossdock.model.commands.admin import Bury, Remove
from crossdock.model.commands.core import LeaseTerms
from crossdock.model.events import Failed, Succeeded
from crossdock.model.job import LeaseBinding
from crossdock.model.policies import Disposition, Policy
from crossdock.model.states import State
from tests.model.bench import Bench, held


def terms(bound: LeaseBinding) -> LeaseTerms:
    return LeaseTerms(1_800.0, 60.0, 86_400.0, bound)


N, W, C = LeaseBinding.UNBOUND, LeaseBinding.WORKER, LeaseBinding.CONNECTION

#: The binding of the lease of worker "holder" · the worker that settles · its token · whether it may settle
FENCES: Final = [
    # A claim with the token of the lease may settle, whatever the lease is bound to.
    (N, "holder", "current", True),
    (W, "holder", "current", True),
    (C, "holder", "current", True),
    (N, "", "current", True),
    (C, "", "current", True),
    # The token of an ended lease: nothing changes, whichever worker has the job leased.
    (N, "holder", "older", False),
    (N, "before", "older", False),
    (W, "holder", "older", False),
    (C, "holder", "older", False),
    (N, "", "older", False),
    # The token of a lease of another job, which was removed.
    (N, "holder", "gone", False),
    # A claim without a token may settle an unbound lease, or one of the worker it names.
    (N, "other", None, True),
    (N, "", None, True),
    (N, "holder", None, True),
    (W, "holder", None, True),
    (W, "other", None, False),
    (W, "", None, False),
    (C, "other", None, False),
    (C, "", None, False),
    (C, "holder", None, False),  # bound to a connection: the name of the worker is not enough
]


@pytest.mark.parametrize("success", [True, False], ids=["succeed", "fail"])
@pytest.mark.parametrize(("bound", "name", "token", "may"), FENCES)
def test_a_settlement_is_fenced_by_token_name_and_binding(
    bench: Bench, bound: LeaseBinding, name: str, token: str | None, may: bool, success: bool
) -> None:
    bench.push("gone")
    gone = held(bench.lease(worker="holder"))
    bench.succeed("gone", "holder", gone)
    [number] = bench.push("jid")
    older = held(bench.lease(worker="before", terms=terms(bound)))
    bench.give_back(older)
    current = held(bench.lease(worker="holder", terms=terms(bound)))
    named = {"current": current, "older": older, "gone": gone, None: None}[token]
    so_far = len(bench.events)
    assert (bench.succeed if success else bench.fail)("jid", name, named) is may
    if may:
        assert (number in bench.state.jobs) is not success
        assert isinstance(bench.last, Succeeded | Failed)
        assert (bench.last.worker, bench.last.token) == ("holder", current[1]), "the event names the holder"
    else:
        assert len(bench.events) == so_far
        assert bench.job(number).state is State.LEASED
        assert held(bench.job(number)) == current


@pytest.mark.parametrize("state", ["never pushed", "ready", "scheduled", "retrying", "dead", "gone"])
def test_a_job_that_is_not_leased_cannot_be_settled(bench: Bench, state: str) -> None:
    if state == "scheduled":
        bench.push("jid", due=bench.now.wall + 99.0)
    elif state != "never pushed":
        bench.push("jid")
    if state in ("retrying", "dead", "gone"):
        bench.lease()
        (bench.succeed if state == "gone" else bench.fail)("jid")
    if state == "dead":
        bench.do(Bury("faktory", [1]))
    so_far = len(bench.events)
    assert not bench.succeed("jid")
    assert not bench.fail("jid")
    assert len(bench.events) == so_far


def test_settling_twice_settles_once(bench: Bench) -> None:
    bench.push("jid")
    mine = held(bench.lease())
    assert bench.succeed("jid", "w", mine)
    assert not bench.succeed("jid", "w", mine)
    assert not bench.succeed("jid", "w")
    assert bench.state.counters.processed == 1


def test_a_late_worker_cannot_settle_the_retry_that_another_has(bench: Bench) -> None:
    bench.push("jid")
    late = held(bench.lease(worker="late"))
    bench.after(1_800.0)
    bench.after(3_600.0)
    current = held(bench.lease(worker="now"))
    for settle in (bench.succeed, bench.fail):
        assert not settle("jid", "late", late)
        assert held(bench.job(1)) == current
    assert bench.succeed("jid", "now", current)


def test_a_lease_named_twice_is_given_back_once(bench: Bench) -> None:
    bench.push("jid")
    lease = held(bench.lease())
    bench.give_back(lease, lease)
    assert bench.lease().attempts == 1


def test_giving_back_an_ended_lease_changes_nothing(bench: Bench) -> None:
    bench.push("jid")
    older = held(bench.lease())
    bench.give_back(older)
    current = held(bench.lease())
    so_far = len(bench.events)
    bench.give_back(older, (99, 1), (1, 99))
    assert len(bench.events) == so_far
    assert held(bench.job(1)) == current
    bench.succeed("jid")
    bench.give_back(current)
    assert bench.state.jobs == {}


# Where a job goes


@pytest.mark.parametrize(
    ("then", "state"),
    [(Disposition.GONE, None), (Disposition.COMPLETE, State.COMPLETE), (Disposition.DEAD, State.DEAD)],
)
def test_a_success_moves_the_job_as_its_policy_says(bench: Bench, then: Disposition, state: State | None) -> None:
    [number] = bench.push("a", policy=Policy(success=then))
    mine = held(bench.lease())
    assert bench.succeed("a", "w", mine)
    assert [job.state for job in bench.state.jobs.values()] == ([state] if state is not None else [])
    assert not bench.succeed("a", "w", mine)
    if state is not None:
        bench.do(Remove("workq", "expired", [number], frozenset({state})))
        assert bench.state.jobs == {}


@pytest.mark.parametrize(
    ("then", "state"), [(Disposition.GONE, None), (Disposition.FAILED, State.FAILED), (Disposition.DEAD, State.DEAD)]
)
def test_the_last_failure_moves_the_job_as_its_policy_says(
    bench: Bench, then: Disposition, state: State | None
) -> None:
    [number] = bench.push("a", policy=Policy(-1, exhausted=then))
    bench.lease()
    assert bench.fail("a")
    assert [job.state for job in bench.state.jobs.values()] == ([state] if state is not None else [])
    if state is not None:
        bench.do(Remove("workq", "expired", [number], frozenset({state})))
        assert bench.state.jobs == {}


# Several jobs of one jid


def test_a_jid_may_be_pushed_again_while_the_first_is_alive(bench: Bench) -> None:
    one, two, three = bench.push("twin", "twin", "twin")
    assert [job.number for job in bench.state.named("twin")] == [one, two, three]
    assert [bench.lease().number, bench.lease().number] == [one, two]
    assert bench.succeed("twin")
    assert [job.number for job in bench.state.named("twin")] == [two, three]
    assert bench.succeed("twin")
    assert [job.number for job in bench.state.named("twin")] == [three]
    bench.lease()
    assert bench.succeed("twin")
    assert list(bench.state.named("twin")) == []
    assert list(bench.state.jids) == []


def test_of_several_jobs_the_one_leased_to_that_worker_is_settled(bench: Bench) -> None:
    bench.push("twin", "twin", "twin")
    for worker in ("a", "b", "c"):
        bench.lease(worker=worker)
    assert bench.succeed("twin", "b")
    assert [job.number for job in bench.state.named("twin")] == [1, 3]


def test_of_several_jobs_without_a_matching_worker_the_first_leased_is_settled(bench: Bench) -> None:
    bench.push("twin", "twin")
    first = held(bench.lease(worker="a"))
    bench.lease(worker="b")
    bench.give_back(first)
    bench.lease(worker="a")  # the older job has the newer lease now
    assert bench.succeed("twin", "other")
    assert [job.number for job in bench.state.named("twin")] == [1]


def test_of_several_jobs_the_token_decides_which_is_settled(bench: Bench) -> None:
    bench.push("twin", "twin")
    bench.lease()
    second = held(bench.lease())
    assert bench.succeed("twin", "w", second)
    assert [job.number for job in bench.state.named("twin")] == [1]


# What is counted


def test_a_settlement_counts_wait_run_and_failures(bench: Bench) -> None:
    bench.push("good", "bad", "given back")
    bench.clock.pass_by(2.0)
    bench.lease()
    bench.lease()
    returned = held(bench.lease())
    bench.clock.pass_by(3.0)
    bench.succeed("good")
    bench.fail("bad")
    bench.give_back(returned)
    assert (bench.state.counters.processed, bench.state.counters.failures) == (2, 1)
    [page] = bench.state.stats.days["default"].values()
    assert (page.wait.n, page.wait.mean) == (3, 2.0)
    assert (page.run.n, page.run.mean) == (1, 3.0)
    assert page.failures == 1


def test_times_are_never_negative_though_the_clock_goes_back(bench: Bench) -> None:
    bench.push("a")
    bench.clock.jump(-100.0)
    bench.lease()
    bench.clock.jump(-100.0)
    bench.succeed("a")
    assert isinstance(bench.last, Succeeded)
    assert (bench.last.wait_s, bench.last.run_s) == (0.0, 0.0)
    assert [event.at for event in bench.events] == [bench.events[0].at] * 3, "at never decreases"
