"""Sliced requests share the event loop: many of them delay other requests no longer than one does."""

import pytest

from crossdock.server.clock import Clock, LoopClock
from crossdock.server.pending import SLICES_S, SliceQueue
from tests.support.hand_loop import HandLoop


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> HandLoop:
    """Each reading of the clock takes a quarter of the time that slices have in one pass."""
    loop = HandLoop()
    ticks = iter(range(1_000_000))
    monkeypatch.setattr("crossdock.server.pending.time.monotonic", lambda: next(ticks) * SLICES_S / 4)
    return loop


def test_slices_of_one_pass_end_when_their_time_is_over(loop: HandLoop) -> None:
    """The next pass continues where it stopped."""
    queue = SliceQueue(LoopClock(Clock(), loop.as_loop(), lambda now: None))
    done: list[int] = []
    for n in range(100):
        queue.add(lambda n=n: done.append(n))  # type: ignore[misc]
    loop.step()
    assert 0 < len(done) < 10
    loop.run()
    assert done == list(range(100))


def test_a_slice_that_adds_itself_again_waits_for_the_next_pass(loop: HandLoop) -> None:
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


def test_a_slice_that_fails_does_not_stop_the_others(loop: HandLoop) -> None:
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
