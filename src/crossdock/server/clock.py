"""The server's clocks: the system's wall time, and a steady one that goes on over restarts."""

import time

from crossdock.model.clock import Now


class Clock:
    def __init__(self, wall: float = 0.0, steady: float = 0.0) -> None:
        """Continue from the last batch's pair. The time the server was down counts, unless the wall clock went back."""
        self._offset = steady + max(0.0, time.time() - wall if wall else 0.0) - time.clock_gettime(time.CLOCK_BOOTTIME)

    def now(self) -> Now:
        return Now(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME) + self._offset)
