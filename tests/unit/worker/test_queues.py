"""The queues of a worker, and the requests that their order makes."""

from collections import Counter
from random import Random

import pytest

from crossdock.worker.queues import QueueOrder, Request, WeightedQueue, interleave, read_queues


def queues(*names: str) -> tuple[WeightedQueue, ...]:
    return tuple(WeightedQueue(name) for name in names)


def test_queues_are_read_with_their_weights() -> None:
    assert read_queues(["mail:5,default", "slow"]) == (
        WeightedQueue("mail", 5),
        WeightedQueue("default"),
        WeightedQueue("slow"),
    )
    assert read_queues([]) == ()


@pytest.mark.parametrize("text", ["", "a,,b", "a:", "a:0", "a:-1", "a:x", "a:1001", "a:²", "a b", "a,a", "x" * 256])
def test_wrong_queues_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"queue|weight"):
        read_queues([text])


def test_ordered_queues_are_one_request() -> None:
    assert QueueOrder("ordered", queues("c", "b", "a")).plan(7) == [Request(("c", "b", "a"), 7)]


def test_round_robin_begins_with_the_next_queue_each_time() -> None:
    order = QueueOrder("round-robin", queues("c", "b", "a"))
    first = [order.plan(1)[0].queues for _ in range(4)]
    assert first == [("c", "b", "a"), ("b", "a", "c"), ("a", "c", "b"), ("c", "b", "a")]


def test_round_robin_divides_many_jobs_and_goes_on_where_it_ended() -> None:
    order = QueueOrder("round-robin", queues("c", "b", "a"))
    assert [(request.queues[0], request.size) for request in order.plan(4)] == [("c", 2), ("b", 1), ("a", 1)]
    assert [(request.queues[0], request.size) for request in order.plan(2)] == [("b", 1), ("a", 1)]
    order.took(["a", "c"])
    assert order.waiting(5) == Request(("b", "a", "c"), 5)


def test_weighted_queues_get_their_share_of_many_jobs() -> None:
    order = QueueOrder("weighted", [WeightedQueue("mail", 3), WeightedQueue("default")], Random(1).random)
    taken: Counter[str] = Counter()
    for count in (10, 7, 3, 2, 8) * 20:
        plan = order.plan(count)
        assert sum(request.size for request in plan) == count
        assert all(sorted(request.queues) == ["default", "mail"] for request in plan)
        for request in plan:
            taken[request.queues[0]] += request.size
    assert 2.5 < taken["mail"] / taken["default"] < 3.5


def test_weighted_queues_are_drawn_by_weight_for_one_job() -> None:
    order = QueueOrder("weighted", [WeightedQueue("mail", 9), WeightedQueue("default")], Random(1).random)
    first = Counter(order.plan(1)[0].queues[0] for _ in range(1_000))
    assert 850 < first["mail"] < 950


def test_lists_are_interleaved() -> None:
    assert interleave([[1, 4, 6], [2], [3, 5]]) == [1, 2, 3, 4, 5, 6]
    assert interleave([]) == []
