"""A manual event loop: callbacks run when the test calls `step` or `run`, timers when it calls `advance`."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast


class Timer:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class HandLoop:
    def __init__(self) -> None:
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[Timer] = []
        self._now = 0.0

    def as_loop(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., None], *args: Any) -> None:
        self._soon.append(lambda: callback(*args))

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> Timer:
        timer = Timer(self._now + delay, lambda: callback(*args))
        self._timers.append(timer)
        return timer

    @property
    def alarms(self) -> list[float]:
        """The times of its active timers."""
        return [timer.at for timer in self._timers if not timer.cancelled]

    def step(self) -> None:
        """One pass: run the callbacks that were queued before it, not those that it queues."""
        for _ in range(len(self._soon)):
            self._soon.popleft()()

    def run(self) -> None:
        """Run passes until no callback is queued."""
        for _ in range(10_000):
            if not self._soon:
                return
            self.step()
        raise AssertionError("the loop does not become idle")

    def advance(self, seconds: float) -> int:
        """Move the clock and fire the timers that are due, once each. Returns how many fired."""
        self._now += seconds
        due = [timer for timer in self._timers if timer.at <= self._now and not timer.cancelled]
        self._timers = [timer for timer in self._timers if timer.at > self._now and not timer.cancelled]
        for timer in due:
            timer.callback()
        return len(due)
