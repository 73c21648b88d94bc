"""A peer that may not be silent for long: cut off when it was, while it was its turn to speak."""

from collections.abc import Callable
from typing import Final, Protocol

from crossdock.protocols.base import Close, IdleLimited
from crossdock.server.clock import LoopClock
from crossdock.server.group_commit import GroupCommit


class Peer(Protocol):
    """The connection, as this clock sees it."""

    def is_closing(self) -> bool: ...

    def is_busy(self) -> bool:
        """The peer waits for a reply."""

    def close_with(self, last: Close) -> None: ...


class IdleTimeout:
    """Looked at when the peer might have been silent for too long: hearing it costs no timer."""

    def __init__(self, peer: Peer, session: IdleLimited, turn: GroupCommit) -> None:
        self._peer = peer
        self._session = session
        self._turn = turn
        self._deadline = Deadline(turn.clock, session.silence_s, self._look)

    def _look(self) -> None:
        if self._peer.is_closing():
            return
        session = self._session
        left = session.silence_s if self._peer.is_busy() else session.heard + session.silence_s - self._turn.now.steady
        if left > 0:
            self._deadline = Deadline(self._turn.clock, left, self._look)
        else:
            self._peer.close_with(session.silent())

    def answered(self) -> None:
        """After work that took a while: from now on it may be silent for as long as ever."""
        self._session.heard = self._turn.now.steady

    def end(self) -> None:
        self._deadline.cancel()


# A peer's deadline, judged fairly. When the machine stands still for a while the event loop fires its timers before it
# reads: what the peer sent in time would come too late. So a server that was held up reads first.


#: A timer that is later than this was held up.
HELD_UP_S: Final = 0.1

#: And then what was sent meanwhile is read, by peers that were perhaps held up with the server, for so long.
CATCH_UP_S: Final = 0.25


class Deadline:
    def __init__(self, clock: LoopClock, seconds: float, over: Callable[[], None]) -> None:
        self._clock = clock
        self._over = over
        self._due = clock.time() + seconds
        self._timer = clock.call_later(seconds, self._fired)

    def _fired(self) -> None:
        if self._clock.time() - self._due > HELD_UP_S:
            self._timer = self._clock.call_later(CATCH_UP_S, self._over)
        else:
            self._over()

    def cancel(self) -> None:
        self._timer.cancel()
