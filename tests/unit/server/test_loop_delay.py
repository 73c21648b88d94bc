"""The delay of the event loop."""

from types import SimpleNamespace

import pytest

from crossdock.server import loop_delay
from crossdock.server.loop_delay import LoopDelay
from tests.support.hand_loop import HandLoop


def test_a_late_timer_is_measured_and_the_next_one_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(loop_delay, "time", SimpleNamespace(monotonic=lambda: now))
    loop = HandLoop()
    delay = LoopDelay(loop.as_loop())
    delay.start()
    now += 0.1  # on time
    loop.advance(0.1)
    now += 0.6  # half a second late
    loop.advance(0.1)
    delay.add_collected()
    assert delay.histogram.cumulative((0.001, 0.25, 1.0)) == [1, 1, 2, 2]
    assert delay.histogram.sum == pytest.approx(0.5)
    delay.stop()
    assert loop.alarms == []
