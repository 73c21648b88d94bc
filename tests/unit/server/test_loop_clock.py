"""The clocks are read once per pass of the event loop, before anything happens in it."""

from typing import cast

import pytest

from crossdock.model.clock import Now
from crossdock.server.clock import Clock, LoopClock
from tests.support.hand_loop import HandLoop


class Counted:
    """A clock that moves by a second at every reading."""

    def __init__(self) -> None:
        self.readings = 0

    def now(self) -> Now:
        self.readings += 1
        return Now(1_000.0 + self.readings, float(self.readings))


class Setting:
    def __init__(self) -> None:
        self.loop = HandLoop()
        self.source = Counted()
        self.passes: list[float] = []
        self.seen: list[tuple[str, int]] = []
        self.clock = LoopClock(
            cast(Clock, self.source), self.loop.as_loop(), lambda now: self.passes.append(now.steady)
        )

    def see(self, name: str) -> None:
        self.seen.append((name, self.source.readings))


@pytest.fixture
def setting() -> Setting:
    return Setting()


def test_callbacks_of_one_pass_share_one_reading(setting: Setting) -> None:
    setting.clock.call_soon(setting.see, "one")
    setting.clock.call_soon(setting.see, "two")
    setting.loop.step()
    assert setting.seen == [("one", 1), ("two", 1)] and setting.passes == [1.0]


def test_the_next_pass_reads_the_clocks_again(setting: Setting) -> None:
    setting.clock.enter()
    setting.clock.call_soon(setting.see, "later")
    setting.loop.step()
    assert setting.seen == [("later", 2)] and setting.passes == [1.0, 2.0]


def test_a_timer_sees_the_time_of_its_own_pass(setting: Setting) -> None:
    setting.clock.call_later(5.0, setting.see, "timer")
    setting.clock.enter()
    setting.loop.run()
    setting.loop.advance(5.0)
    assert setting.seen == [("timer", 2)]


def test_entering_a_pass_twice_reads_the_clocks_once(setting: Setting) -> None:
    setting.clock.enter()
    setting.clock.enter()
    assert setting.source.readings == 1


def test_the_begin_of_a_pass_runs_in_the_same_pass(setting: Setting) -> None:
    clock = LoopClock(cast(Clock, setting.source), setting.loop.as_loop(), lambda now: clock.enter())
    clock.enter()
    assert setting.source.readings == 1
