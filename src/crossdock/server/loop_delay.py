"""Measures the delay of the event loop: how much later than planned a timer runs."""

import asyncio
import time
from typing import Final

from crossdock.server.histogram import SECONDS, Histogram

_EVERY_S: Final = 0.1


class LoopDelay:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._planned = 0.0
        self._delays: list[float] = []
        self.histogram = Histogram(SECONDS)

    def start(self) -> None:
        self._planned = time.monotonic() + _EVERY_S
        self._timer = self._loop.call_later(_EVERY_S, self._measure)

    def _measure(self) -> None:
        self._delays.append(max(0.0, time.monotonic() - self._planned))
        self.start()

    def add_collected(self) -> None:
        """Called every second, and before the histogram is read."""
        self.histogram.add(self._delays)
        self._delays.clear()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
