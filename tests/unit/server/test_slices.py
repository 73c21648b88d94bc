"""Long answers share the event loop: many of them hold others up no longer than one does."""

import pytest

from crossdock.server.clock import Clock, LoopClock
from crossdock.server.limits import SLICES_S
from crossdock.server.pending import SliceQueue
from tests.support.hand_loop import HandLoop


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> HandLoop:
    """A clock by which each question takes a quarter of what the slices of one pass may take."""
    loop = HandLoop()
    ticks = iter(range(1_000_000))
    monkeypatch.setattr("crossdock.server.pending.time.monotonic", lambda: next(ticks) * SLICES_S / 4)
    return loop


def test_a_pass_of_long_answers_ends_when_its_time_is_over(loop: HandLoop) -> None:
    """They did. Now a pass ends when its time is over, and the next one goes on where it stopped."""
    queue = SliceQueue(LoopClock(Clock(), loop.as_loop(), lambda now: None))
    done: list[int] = []
    for n in range(100):
        queue.add(lambda n=n: done.append(n))  # type: ignore[misc]
    loop.step()
    assert 0 < len(done) < 10
    loop.run()
    assert done == list(range(100))


def test_one_that_goes_on_waits_for_the_next_pass(loop: HandLoop) -> None:
    queue = SliceQueue(LoopClock(Clock(), loop.as_loop(), lambda now: None))
    done: list[str] = []

    def work() -> None:
        done.append("slice")
        if len(done) < 5:
            queue.add(work)

    queue.add(work)
    for passes in range(1, 6):
        loop.step()
        assert len(done) == passes
    loop.run()
    assert len(done) == 5


def test_one_that_fails_does_not_stop_the_others(loop: HandLoop) -> None:
    queue = SliceQueue(LoopClock(Clock(), loop.as_loop(), lambda now: None))
    done: list[str] = []

    def broken() -> None:
        raise RuntimeError("broken")

    queue.add(broken)
    queue.add(lambda: done.append("other"))
    with pytest.raises(RuntimeError):
        loop.step()
    loop.run()
    assert done == ["other"]
