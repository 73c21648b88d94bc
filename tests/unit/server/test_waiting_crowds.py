"""Many waiters that cannot take a job: passing over them takes linear time, not quadratic."""

import time

from crossdock.protocols.base import Wait
from tests.support.counted_queues import CountedQueues


def test_passing_over_many_waiters_takes_linear_time() -> None:
    queues = CountedQueues()
    queues.quiet = {f"quiet {n}" for n in range(10_000)}
    for n in range(10_000):
        queues.come(f"quiet {n}", "red", "blue")
    begun = time.process_time()
    queues.push("red", "blue")
    assert time.process_time() - begun < 2.5, "quadratic: for each waiter all before it were scanned again"
    assert queues.waits.asked == 10_000
    assert queues.served == []


def test_waiters_between_passed_over_ones_are_served_in_order() -> None:
    queues = CountedQueues()
    queues.quiet = {f"{n}" for n in range(100) if n % 3}
    for n in range(100):
        queues.come(f"{n}", "red", *["blue"] * (n % 2))
    queues.push(*["red"] * 20, *["blue"] * 20)
    red, blue = range(0, 60, 3), range(63, 100, 6)
    assert queues.served == [*(f"{n}: red" for n in red), *(f"{n}: blue" for n in blue)]


def test_a_waiter_added_while_others_are_passed_over_is_asked_too() -> None:
    queues = CountedQueues()
    queues.quiet = {f"quiet {n}" for n in range(50)}
    for n in range(50):
        queues.come(f"quiet {n}", "red")
    wait = Wait(("red",), 0.0, lambda late: Wait(("red", "blue"), 0.0, lambda late: b""))
    queues.waits.add(wait, lambda answer: queues.come("again", "red"))
    queues.push("red")
    assert queues.served == ["again: red"]
