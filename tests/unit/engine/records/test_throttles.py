"""Configured throttles: how many jobs of a queue are leased at a time."""

import pytest

from crossdock.engine.decision import FollowUps
from crossdock.engine.records.throttles import throttles_set
from crossdock.engine.state import EngineState
from crossdock.model.commands.admin import Flush, Remove
from crossdock.model.commands.core import LeaseTerms, SetThrottles
from crossdock.model.events import ThrottlesSet
from crossdock.model.job import LeaseBinding
from crossdock.model.records import OF_QUEUE, Per
from crossdock.model.states import State
from tests.model.bench import Bench, held


def test_a_throttle_limits_the_leases_of_a_queue(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 2, Per.QUEUE, 0.0)]))
    bench.push("a", "b", "c", "d")
    first = held(bench.lease(worker="w1"))
    bench.lease(worker="w2")
    assert bench.nothing_to_lease(worker="w3")
    assert bench.nothing_to_lease("default", "default")
    bench.give_back(first)
    bench.lease()
    assert bench.nothing_to_lease()
    bench.succeed("b")
    assert list(bench.ready_queues) == ["default"]
    assert bench.lease().jid == "c"
    bench.fail("c")
    assert bench.lease().jid == "d"
    assert bench.nothing_to_lease()
    bench.after(1_800.0)
    assert not bench.nothing_to_lease()


def test_a_throttle_can_limit_the_leases_of_each_worker(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.WORKER, 0.0)]))
    bench.push("a", "b", "c")
    bench.lease(worker="w1")
    assert bench.nothing_to_lease(worker="w1")
    assert bench.lease(worker="w2").jid == "b"


def test_a_lease_counts_no_longer_than_the_timeout(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 30.0)]))
    bench.push("a", "b")
    bench.lease()
    bench.clock.pass_by(29.999)
    assert bench.nothing_to_lease()
    bench.clock.pass_by(0.001)
    assert bench.lease().jid == "b"


def test_leases_from_before_the_throttle_count(bench: Bench) -> None:
    bench.push("a", "b")
    bench.lease()
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    assert bench.nothing_to_lease()
    bench.do(SetThrottles([]))
    assert list(bench.ready_queues) == ["default"], "waiting clients are woken"
    assert not bench.nothing_to_lease()


@pytest.mark.parametrize("how", ["flushed", "removed", "restarted"])
def test_an_ended_lease_does_not_count(bench: Bench, how: str) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    [number] = bench.push("a")
    bench.lease(terms=LeaseTerms(1_800.0, 60.0, 86_400.0, LeaseBinding.CONNECTION))
    if how == "flushed":
        bench.do(Flush("faktory"))
    elif how == "removed":
        bench.do(Remove("faktory", "discarded", [number], frozenset({State.LEASED})))
    else:
        bench.restart()
    assert how != "removed" or list(bench.ready_queues) == ["default"], "waiting clients are woken"
    bench.push("b")
    assert not bench.nothing_to_lease()
    assert bench.nothing_to_lease()


def test_throttles_that_are_waited_for_keep_their_order_when_the_configuration_drops_them() -> None:
    """A set would have another order in each process, so a recovered state would differ from the live one."""
    queues = [f"q{n}" for n in range(20)]
    state = EngineState()
    follow_ups: FollowUps = []
    throttles_set(state, follow_ups, ThrottlesSet(1.0, [(queue, 1, Per.QUEUE, 0.0) for queue in queues]))
    for throttle in state.throttles.values():
        throttle.pending["x"] = 1.0
    throttles_set(state, follow_ups, ThrottlesSet(2.0, []))
    assert list(state.throttles) == [OF_QUEUE + queue for queue in queues]
    assert [each.throttle for each in follow_ups] == list(state.throttles)


def test_other_queues_are_not_throttled(bench: Bench) -> None:
    bench.do(SetThrottles([("default", 1, Per.QUEUE, 0.0)]))
    bench.push("a", "b")
    bench.push("c", queue="other")
    bench.lease()
    assert bench.lease("default", "other").jid == "c"
