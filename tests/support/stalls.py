"""Seconds by a clock that stands still when the machine does, for tests that bound how long something may take.

A thread on each processor wants to run every few milliseconds. What it gets later than that nobody got who wanted to
run there: the machine was taken away, by its own host or by somebody else's programs. A server that is busy itself, or
waits where it should not, keeps none of them from running.
"""

import os
import threading
import time
from types import TracebackType
from typing import Final, Self

_TICK_S: Final = 0.005

#: Less than this a fair scheduler may take.
_FAIR_S: Final = 0.03


class Stalls:
    """From its beginning; with it the ticking ends."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lost = dict.fromkeys(os.sched_getaffinity(0), 0.0)
        self._threads = [threading.Thread(target=self._tick, args=(core,), daemon=True) for core in self._lost]
        self._began = time.monotonic()
        self.elapsed = self.lost = 0.0  #: at the end

    def _tick(self, core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        while not self._over.is_set():
            before = time.monotonic()
            time.sleep(_TICK_S)
            late = time.monotonic() - before - _TICK_S
            if late > _FAIR_S:
                self._lost[core] += late

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """When each has ticked once more: a stall may not be over yet."""
        took = time.monotonic() - self._began
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.lost = sum(self._lost.values())
        self.elapsed = took - self.lost
