"""A crowd that waits and is not entitled: it is passed over at a price that grows with it, not with its square."""

import time

from crossdock.protocols.base import Wait
from tests.support.counted_queues import CountedQueues


def test_a_crowd_that_is_passed_over_is_walked_over_once() -> None:
    queues = CountedQueues()
    queues.quiet = {f"quiet {n}" for n in range(10_000)}
    for n in range(10_000):
        queues.come(f"quiet {n}", "red", "blue")
    begun = time.process_time()
    queues.push("red", "blue")
    assert time.process_time() - begun < 2.5, "for each of them all before it were looked at again"
    assert queues.waits.asked == 10_000
    assert queues.served == []


def test_those_between_passed_over_ones_are_served_in_the_order_they_came() -> None:
    queues = CountedQueues()
    queues.quiet = {f"{n}" for n in range(100) if n % 3}
    for n in range(100):
        queues.come(f"{n}", "red", *["blue"] * (n % 2))
    queues.push(*["red"] * 20, *["blue"] * 20)
    red, blue = range(0, 60, 3), range(63, 100, 6)
    assert queues.served == [*(f"{n}: red" for n in red), *(f"{n}: blue" for n in blue)]


def test_a_waiter_added_while_a_crowd_is_passed_over_is_asked_too() -> None:
    queues = CountedQueues()
    queues.quiet = {f"quiet {n}" for n in range(50)}
    for n in range(50):
        queues.come(f"quiet {n}", "red")
    wait = Wait(("red",), 0.0, lambda late: Wait(("red", "blue"), 0.0, lambda late: b""))
    queues.waits.add(wait, lambda answer: queues.come("again", "red"))
    queues.push("red")
    assert queues.served == ["again: red"]
