"""A peer's deadline, judged fairly. When the machine stands still for a while the event loop fires its timers before it
reads: what the peer sent in time would come too late. So a server that was held up reads first."""

import asyncio
from collections.abc import Callable
from typing import Final

#: A timer that is later than this was held up.
HELD_UP_S: Final = 0.1

#: And then what was sent meanwhile is read, by peers that were perhaps held up with the server, for so long.
CATCH_UP_S: Final = 0.25


class Deadline:
    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, over: Callable[[], None]) -> None:
        self._loop = loop
        self._over = over
        self._due = loop.time() + seconds
        self._timer = loop.call_later(seconds, self._fired)

    def _fired(self) -> None:
        if self._loop.time() - self._due > HELD_UP_S:
            self._timer = self._loop.call_later(CATCH_UP_S, self._over)
        else:
            self._over()

    def cancel(self) -> None:
        self._timer.cancel()
