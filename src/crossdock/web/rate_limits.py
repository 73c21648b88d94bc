"""Limits how often a caller may ask: a token bucket for each, in a table of bounded size."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

#: Callers that are remembered. Beyond it the one that has been quiet for longest is forgotten.
CALLERS: Final = 10_000


class RateLimit:
    """Up to `burst` requests at once, and `per_second` on average."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: str) -> int:
        """Count a request. 0 if it is allowed, else the whole seconds after which the next one is."""
        now = self._clock()
        left, at = self._buckets.pop(caller, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._per_second)
        allowed = left >= 1
        self._buckets[caller] = (left - 1 if allowed else left, now)
        if len(self._buckets) > CALLERS:
            self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1 - left) / self._per_second)

    def __len__(self) -> int:
        return len(self._buckets)
