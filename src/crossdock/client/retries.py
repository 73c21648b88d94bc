"""When a call is repeated, and how long after: shared by the blocking client and the asyncio client."""

import math
import random
import time
from collections.abc import Callable
from typing import Final

from crossdock.client.errors import Broken, ClientError, NoServer, ServerFull

TIMEOUT_S: Final = 30.0
PATIENCE_S: Final = 10.0
#: The first pause, and the longest. Each is twice the one before, less a random part.
FIRST_S: Final = 0.05
LONGEST_S: Final = 2.0


class Patience:
    """The tries of one call.

    A lost connection, a server that cannot be reached and one that is full are worth another try until the time is
    over, which begins with the first error. Other errors are not.
    """

    __slots__ = ("_clock", "_draw", "_pause_s", "_until", "_waits_s")

    def __init__(
        self,
        waits_s: float,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._waits_s = waits_s
        self._clock = clock
        self._draw = draw
        self._until: float | None = None
        self._pause_s = FIRST_S

    def after(self, error: ClientError, *, sent: bool = False) -> float:
        """The seconds until the next try. Raises the error if it is final or the time is over. `sent`: the request may
        have reached the server."""
        if not isinstance(error, (NoServer, Broken, ServerFull)):
            raise error
        now = self._clock()
        if self._until is None:
            self._until = now + self._waits_s
        left = self._until - now
        if left <= 0:
            raise self._final(error, sent) from error
        pause = self._pause_s * (0.5 + 0.5 * self._draw())
        self._pause_s = min(2 * self._pause_s, LONGEST_S)
        return min(pause, left)

    def _final(self, error: ClientError, sent: bool) -> ClientError:
        tried = f" (tried for {self._waits_s:g} s)" if self._waits_s else ""
        unknown = "; it is not known whether the last request was executed" if sent else ""
        if isinstance(error, NoServer):
            return NoServer(f"{error}{tried}; start it with crossdock up, or correct the URL{unknown}")
        if isinstance(error, ServerFull):
            return ServerFull(f"{error}{tried}")
        return Broken(f"{error}{tried}{unknown}")


def not_repeated(error: ClientError) -> Broken:
    """The error of a push that must not be repeated, because the server would push a second job."""
    return Broken(
        f"{error}; it is not known whether the request was executed, and this server cannot recognize a repeated push"
    )


def deadline(timeout_s: float | None) -> float:
    return math.inf if timeout_s is None else time.monotonic() + timeout_s


def left(until: float) -> float:
    return max(until - time.monotonic(), 0.0)
