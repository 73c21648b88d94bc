"""Who is connected: everybody, those who have said who they are, and the memory that requests and replies take.

Only the second count towards the limit that clients are told of: whoever opens sockets and says nothing keeps nobody
out. The memory for what is half sent, or was sent in pieces and is worked on in slices, is bounded over all of them:
the one who has sent most of it is cut off. The memory for replies that have not left is bounded in the same way: the
connection with most of them is closed, and one whose peer has read nothing for a second before one that reads.
"""

import logging
import time
from collections.abc import Iterator
from math import inf
from typing import Final, Protocol

from crossdock.server.limits import Limits

log = logging.getLogger("crossdock")

#: Connections beyond the limit that may be open without a handshake; each has a deadline for it.
STRANGERS: Final = 1_000

#: Connections whose replies are counted in one go.
_LOOKED_AT: Final = 500

#: The log has one line of those who were cut off in so long.
_TELL_S: Final = 10.0


class ConnectedPeer(Protocol):
    unfinished: int  #: bytes that are no whole request yet, or one that came in pieces and is worked on
    unread: int  #: bytes of replies that have not left, as last counted

    def waiting_bytes(self) -> int:
        """The same, as it is now."""

    def unsent_bytes(self) -> int:
        """Of these, what the socket has not taken."""

    def describe(self) -> str:
        """For the log."""

    def abort(self) -> None: ...

    def shut_down(self, give_up: float) -> None: ...


class ConnectionRegistry:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.connections: set[ConnectedPeer] = set()
        self.welcomed: set[ConnectedPeer] = set()
        self.unfinished = 0
        self.cut_off = 0  #: for that
        self._told = -inf
        self.unread = 0
        self._unread_of: dict[ConnectedPeer, int] = {}  #: those that have some, and what was unsent at the last look
        self._stalled: set[ConnectedPeer] = set()  #: those whose socket took nothing between the last two looks
        self.closed_unread = 0  #: connections, for that
        self._unread_told = -inf

    def enter(self, peer: ConnectedPeer) -> bool:
        """False: there is no place for another stranger."""
        self.connections.add(peer)
        return len(self.connections) <= self.limits.connections + STRANGERS

    def welcome(self, peer: ConnectedPeer) -> bool:
        """It has said who it is. False: so many have that there is no place for it."""
        if len(self.welcomed) >= self.limits.connections:
            return False
        self.welcomed.add(peer)
        return True

    def leave(self, peer: ConnectedPeer) -> None:
        self.connections.discard(peer)
        self.welcomed.discard(peer)
        self.finish(peer)
        self._settle(peer, 0)

    def count_replies(self, peer: ConnectedPeer) -> None:
        """Something was said to it, or left."""
        waiting = peer.waiting_bytes()
        if waiting != peer.unread:
            self._settle(peer, waiting)
            if self.unread > self.limits.reply_bytes:
                self._close_largest()

    def look_at_replies(self) -> Iterator[None]:
        """Once a second, in slices: of small replies to a peer that does not read nobody hears."""
        stalled: set[ConnectedPeer] = set()
        for seen, peer in enumerate(list(self.connections)):
            if seen % _LOOKED_AT == _LOOKED_AT - 1:
                yield
            before, waiting = self._unread_of.get(peer, 0), peer.waiting_bytes()
            self._settle(peer, waiting)
            if waiting:
                unsent = self._unread_of[peer] = peer.unsent_bytes()
                if 0 < before <= unsent:
                    stalled.add(peer)
        self._stalled = stalled
        if self.unread > self.limits.reply_bytes:
            self._close_largest()

    def _settle(self, peer: ConnectedPeer, waiting: int) -> None:
        self.unread += waiting - peer.unread
        peer.unread = waiting
        if waiting:
            self._unread_of.setdefault(peer, 0)
        else:
            self._unread_of.pop(peer, None)
            self._stalled.discard(peer)

    def _close_largest(self) -> None:
        for peer in list(self._unread_of):  # most of them have read meanwhile
            self._settle(peer, peer.waiting_bytes())
        while self.unread > self.limits.reply_bytes:
            most = max(self._unread_of, key=lambda each: (each in self._stalled, each.unread))
            self._tell_closed(most)
            self._settle(most, 0)
            most.abort()

    def _tell_closed(self, peer: ConnectedPeer) -> None:
        self.closed_unread += 1
        now = time.monotonic()
        if now >= self._unread_told + _TELL_S:
            self._unread_told = now
            log.warning(
                "replies that are not read exceed limits.reply_memory_mib; the connection with the most, %d MiB (%s), "
                "is closed (%d so far)",
                peer.unread >> 20,
                peer.describe(),
                self.closed_unread,
            )

    def gather(self, peer: ConnectedPeer, size: int) -> None:
        """So much more of a request that is not whole."""
        peer.unfinished += size
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
                "requests exceed limits.request_memory_mib; closed the largest one, %d MiB (%d so far)",
                size >> 20,
                self.cut_off,
            )

    def finish(self, peer: ConnectedPeer) -> None:
        """What it had begun is kept no longer."""
        self.unfinished -= peer.unfinished
        peer.unfinished = 0
