"""The slices of all long answers, in turn.

In each pass of the event loop they share a millisecond: a hundred clients that ask for much hold the others up no
longer than one does.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from crossdock.server.limits import SLICES_S


class SliceQueue:
    __slots__ = ("_loop", "_scheduled", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, act: Callable[[], None]) -> None:
        """In the next pass, or a later one if there are many. One that adds itself again waits for the others."""
        self._waiting.append(act)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        waiting = self._waiting
        until = time.monotonic() + SLICES_S
        try:
            for _ in range(len(waiting)):
                waiting.popleft()()
                if time.monotonic() >= until:
                    break
        finally:  # one that fails must not stop the others
            self._scheduled = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)
