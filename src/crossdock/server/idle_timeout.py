"""Time limits for a peer: the handshake, and how long it may be idle while the server waits for its next request.

If the machine was stalled, the event loop fires its timers before it reads the sockets. A request that arrived in time
would then be too late. So a deadline that fires late reads first and is checked again shortly after.
"""

from collections.abc import Callable
from typing import Final, Protocol

from crossdock.protocols.base import Answer, IdleLimited
from crossdock.server.clock import LoopClock
from crossdock.server.group_commit import GroupCommit

#: A timer that fires later than this was delayed by a stall.
STALLED_S: Final = 0.1

#: Seconds in which requests that were sent during a stall are read. Peers may have been stalled with the server.
CATCH_UP_S: Final = 0.25


class Peer(Protocol):
    """What the time limits need of a connection."""

    def is_closing(self) -> bool: ...

    def is_busy(self) -> bool:
        """Whether the peer waits for a reply."""

    def accept_answer(self, answer: Answer) -> bool: ...

    def handshake_timed_out(self) -> None: ...


class Deadline:
    """Calls `over` after some seconds, and after `CATCH_UP_S` more if the event loop was stalled."""

    def __init__(self, clock: LoopClock, seconds: float, over: Callable[[], None]) -> None:
        self._clock = clock
        self._over = over
        self._due = clock.time() + seconds
        self._timer = clock.call_later(seconds, self._fired)

    def _fired(self) -> None:
        if self._clock.time() - self._due > STALLED_S:
            self._timer = self._clock.call_later(CATCH_UP_S, self._over)
        else:
            self._over()

    def cancel(self) -> None:
        self._timer.cancel()


class HandshakeTimeout:
    """Aborts a connection that is not identified in time. The peer is not late while the server works for it."""

    def __init__(self, peer: Peer, clock: LoopClock, seconds: float) -> None:
        self._peer = peer
        self._clock = clock
        self._seconds = seconds
        self._deadline = Deadline(clock, seconds, self._check)

    def _check(self) -> None:
        if self._peer.is_busy():
            self._deadline = Deadline(self._clock, self._seconds, self._check)
        else:
            self._peer.handshake_timed_out()

    def cancel(self) -> None:
        self._deadline.cancel()


class IdleTimeout:
    """Closes a connection whose peer was idle for too long. The session records when the peer last sent something; the
    timer checks that when it fires, so a request does not have to move the timer."""

    def __init__(self, peer: Peer, session: IdleLimited, commit: GroupCommit) -> None:
        self._peer = peer
        self._session = session
        self._commit = commit
        self._deadline = Deadline(commit.clock, session.idle_timeout_s, self._check)

    def _check(self) -> None:
        if self._peer.is_closing():
            return
        session = self._session
        idle = 0.0 if self._peer.is_busy() else self._commit.now.steady - session.last_active
        left = session.idle_timeout_s - idle
        if left > 0:
            self._deadline = Deadline(self._commit.clock, left, self._check)
        else:
            self._peer.accept_answer(session.close_idle())

    def restart(self) -> None:
        """A request that took a while was answered: the idle time counts from now."""
        self._session.last_active = self._commit.now.steady

    def cancel(self) -> None:
        self._deadline.cancel()
