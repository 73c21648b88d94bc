"""A clock that subtracts the time during which the machine stalled, for tests with an upper time limit.

One thread per processor wakes every few milliseconds. The time by which it wakes late was available to no process on
that processor: another program or the host of a virtual machine used it. A server that is busy itself, or that waits
where it should not, delays none of these threads.
"""

import os
import threading
import time
from types import TracebackType
from typing import Final, Self

_TICK_S: Final = 0.005

#: A fair scheduler may delay a thread by less than this.
_FAIR_S: Final = 0.03


class Stalls:
    """Measures while its context is active."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._lost = dict.fromkeys(os.sched_getaffinity(0), 0.0)
        self._threads = [threading.Thread(target=self._tick, args=(core,), daemon=True) for core in self._lost]
        self._began = time.monotonic()
        self.elapsed = self.lost = 0.0  #: set at the end

    def _tick(self, core: int) -> None:
        os.sched_setaffinity(0, {core})  # for this thread only
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
        """Wait until each thread has ticked once more, because a stall may still be in progress."""
        took = time.monotonic() - self._began
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.lost = sum(self._lost.values())
        self.elapsed = took - self.lost
