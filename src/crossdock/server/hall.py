"""Who is connected: everybody, those who have said who they are, and how much of requests that are not answered yet.

Only the second count towards the limit that clients are told of: whoever opens sockets and says nothing keeps nobody
out. The memory for what is half sent, or was sent in pieces and is worked on in slices, is bounded over all of them:
the one who has sent most of it is cut off.
"""

import logging
import time
from math import inf
from typing import Final, Protocol

from crossdock.server.limits import Limits

log = logging.getLogger("crossdock")

#: Connections beyond the limit that may be open without a handshake; each has a deadline for it.
STRANGERS: Final = 1_000

#: The log has one line of those who were cut off in so long.
_TELL_S: Final = 10.0


class Guest(Protocol):
    unfinished: int  #: bytes that are no whole request yet, or one that came in pieces and is worked on

    def abort(self) -> None: ...

    def shut_down(self, give_up: float) -> None: ...


class Hall:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections: set[Guest] = set()
        self.welcomed: set[Guest] = set()
        self.unfinished = 0
        self.cut_off = 0  #: for that
        self._told = -inf

    def enter(self, guest: Guest) -> bool:
        """False: there is no place for another stranger."""
        self.connections.add(guest)
        return len(self.connections) <= self.limits.connections + STRANGERS

    def welcome(self, guest: Guest) -> bool:
        """It has said who it is. False: so many have that there is no place for it."""
        if len(self.welcomed) >= self.limits.connections:
            return False
        self.welcomed.add(guest)
        return True

    def leave(self, guest: Guest) -> None:
        self.connections.discard(guest)
        self.welcomed.discard(guest)
        self.finish(guest)

    def gather(self, guest: Guest, size: int) -> None:
        """So much more of a request that is not whole."""
        guest.unfinished += size
        self.unfinished += size
        if self.unfinished > self.limits.unfinished_bytes:
            most = max(self.connections, key=lambda each: each.unfinished)
            self._tell(most.unfinished)
            self.finish(most)
            most.abort()

    def _tell(self, size: int) -> None:
        """Now and then: who comes again and again must not fill the log."""
        self.cut_off += 1
        now = time.monotonic()
        if now >= self._told + _TELL_S:
            self._told = now
            log.warning(
                "requests under way exceed limits.unfinished_mib; who sent most of one, %d MiB, is cut off (%d so far)",
                size >> 20,
                self.cut_off,
            )

    def finish(self, guest: Guest) -> None:
        """What it had begun is kept no longer."""
        self.unfinished -= guest.unfinished
        guest.unfinished = 0
