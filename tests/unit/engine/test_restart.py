"""What a restart keeps, which leases it gives back, and which claims may settle afterwards."""

import pytest

from crossdock.model.commands.admin import PauseQueues
from crossdock.model.commands.core import LeaseTerms, Start
from crossdock.model.events import Started
from crossdock.model.job import LeaseBinding
from crossdock.model.states import State
from tests.model.bench import Bench, held
from tests.model.rig import fold
from tests.support.picture import picture


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.do(Start())
    return bench


def terms(bound: LeaseBinding) -> LeaseTerms:
    return LeaseTerms(1_800.0, 60.0, 86_400.0, bound)


def test_a_restart_writes_an_event_and_counts(bench: Bench) -> None:
    bench.restart()
    assert bench.last == Started(bench.now.wall, 2, bench.now.steady)
    bench.restart()
    assert bench.state.counters.epoch == 3


def test_leases_keep_their_remaining_time(bench: Bench) -> None:
    bench.push("a", "b")
    for bound in (LeaseBinding.UNBOUND, LeaseBinding.WORKER):
        bench.lease(terms=terms(bound))
    bench.clock.pass_by(1_000.0)
    bench.restart()
    assert [job.state for job in bench.state.jobs.values()] == [State.LEASED] * 2
    assert bench.after(799.0).expired == 0
    assert bench.after(1.0).expired == 2


def test_leases_bound_to_a_connection_are_given_back(bench: Bench) -> None:
    bench.push("a", "b")
    bound = held(bench.lease(terms=terms(LeaseBinding.CONNECTION)))
    bench.lease(terms=terms(LeaseBinding.UNBOUND))
    bench.restart()
    assert bench.job(bound[0]).state is State.READY
    assert bench.job(bound[0]).attempts == 0
    assert not bench.succeed("a", "w", bound)
    assert bench.work_order() == ["a"]


def test_queues_pauses_and_counters_are_kept(bench: Bench) -> None:
    bench.push("a", queue="paused")
    bench.push("b")
    bench.lease()
    bench.succeed("b")
    bench.do(PauseQueues(["paused"]))
    before = picture(bench.state)
    assert picture(fold(bench.batches)) == before
    bench.restart()
    assert bench.state.queues["paused"].paused
    assert bench.state.counters.processed == 1
    assert bench.push("next") == [3], "numbers go on"


#: An unbound lease of worker "holder" from before the restart · the worker that settles without a token · whether it
#: may
@pytest.mark.parametrize(
    ("holder", "name", "may"),
    [
        ("holder", "holder", True),  # a lease with its own name counts as its own
        ("holder", "other", False),  # a lease with another name does not: the claim may have been fenced off before
        ("holder", "", True),  # a claim without a name has no history
        ("", "other", True),  # nor has a lease without one
        ("", "", True),
    ],
)
def test_after_a_restart_leases_are_matched_by_worker_name(bench: Bench, holder: str, name: str, may: bool) -> None:
    bench.push("a")
    bench.lease(worker=holder)
    bench.restart()
    assert bench.succeed("a", name) is may


def test_leases_given_after_the_restart_are_free_again(bench: Bench) -> None:
    bench.restart()
    bench.push("a")
    bench.lease(worker="holder")
    assert bench.succeed("a", "other")


def test_a_token_from_before_the_restart_still_names_its_lease(bench: Bench) -> None:
    bench.push("a", "b")
    one, two = held(bench.lease()), held(bench.lease())
    bench.restart()
    assert bench.succeed("a", "other", one)
    bench.give_back(two)
    bench.lease(worker="another")
    assert not bench.succeed("b", "w", two)
