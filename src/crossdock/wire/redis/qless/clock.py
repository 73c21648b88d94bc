"""Whose clock counts in a call (MODEL section 2): its caller's, as the seed demands, or the server's."""

import logging
from math import inf
from typing import Final

log = logging.getLogger("crossdock")

#: A caller whose clock is further off than this is told of.
SKEW_S: Final = 5.0

#: And not again before this time has passed.
_AGAIN_S: Final = 600.0


class CallersClock:
    """What a call's time is taken for: itself."""

    def read(self, t: float, wall: float) -> float:
        return t


class WatchedClock(CallersClock):
    """Reports clocks that are far off the server's; `server`: goes by the server's all the same."""

    def __init__(self, *, server: bool = False) -> None:
        self._server = server
        self._reported = -inf

    def read(self, t: float, wall: float) -> float:
        # Neither NaN nor a time that nothing can be compared with is within.
        if not abs(t - wall) <= SKEW_S and abs(wall - self._reported) >= _AGAIN_S:
            self._reported = wall
            counts = "the server's counts (qless.clock)" if self._server else "theirs counts in their own calls"
            log.warning("a qless client's clock is %+.0f s off the server's; %s", t - wall, counts)
        return wall if self._server else t


#: Without a word.
CALLERS: Final = CallersClock()
