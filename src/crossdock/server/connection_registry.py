"""All connections of the server, and the memory that their requests and replies take.

Only identified peers count towards `limits.connections`: idle sockets without a handshake keep no client out. The
memory of incomplete requests, and of requests that are handled in slices, is bounded across all connections. When it is
exceeded, the connection with the largest share is closed. The memory of replies that are not sent is bounded in the
same way; a connection whose peer has read nothing for a second is closed before one whose peer reads.
"""

import logging
import time
from collections.abc import Iterator
from math import inf
from typing import Final, Protocol

import msgspec

from crossdock import logs
from crossdock.server.connection_log import ConnectionLog
from crossdock.server.reply_queue import ReplyQueue

log = logging.getLogger("crossdock")

#: Connections beyond the limit that may be open without a handshake. Each has a deadline for it.
UNIDENTIFIED_MOST: Final = 1_000

#: Connections whose replies are counted in one slice.
_COUNTED_AT_ONCE: Final = 500

#: Seconds between two log lines about closed connections.
_LOG_EVERY_S: Final = 10.0


class Limits(msgspec.Struct, frozen=True):
    """Bounds of connections that no protocol sets (model.md section 12)."""

    connections: int = 10_000
    jobs: int = 10_000_000
    reply_buffer_bytes: int = 1024 * 1024  #: unread replies of one client after which its requests are not read
    request_memory_bytes: int = 256 * 1024 * 1024  #: incomplete and sliced requests of all clients
    reply_memory_bytes: int = 256 * 1024 * 1024  #: unsent replies of all clients


class ConnectedPeer(Protocol):
    incomplete_bytes: int  #: of an incomplete request, or of one that came in pieces and is handled in slices
    reply_bytes: int  #: of replies that are not sent, as last counted

    @property
    def protocol(self) -> str:
        """The name of its protocol."""

    @property
    def replies(self) -> ReplyQueue: ...

    @property
    def log(self) -> ConnectionLog: ...

    def log_commands(self, on: bool) -> None:
        """Log each command, or no more."""

    def abort(self) -> None: ...

    def shut_down(self, give_up: float) -> None: ...


class ConnectionRegistry:
    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._numbered = 0
        self.connections: set[ConnectedPeer] = set()
        self.admitted: set[ConnectedPeer] = set()  #: those that are identified
        self.incomplete_bytes = 0  #: of all connections
        self.closed_incomplete = 0  #: connections closed because of it
        self._requests_logged = -inf
        self.reply_bytes = 0  #: of all connections
        self.closed_unread = 0  #: connections closed because of it
        self._replies_logged = -inf
        #: Connections with unsent replies, and the bytes that the socket had not taken at the last count
        self._unsent_at_last_count: dict[ConnectedPeer, int] = {}
        self._stalled: set[ConnectedPeer] = set()  #: those whose socket took nothing between the last two counts

    def next_number(self) -> int:
        """The number of a new connection, since this start."""
        self._numbered += 1
        return self._numbered

    def add(self, peer: ConnectedPeer) -> bool:
        """False: too many connections are open, and this one must be closed."""
        self.connections.add(peer)
        return len(self.connections) <= self.limits.connections + UNIDENTIFIED_MOST

    def admit(self, peer: ConnectedPeer) -> bool:
        """The peer is identified. False: `limits.connections` is reached."""
        if len(self.admitted) >= self.limits.connections:
            return False
        self.admitted.add(peer)
        return True

    def remove(self, peer: ConnectedPeer) -> None:
        self.connections.discard(peer)
        self.admitted.discard(peer)
        self.end_incomplete(peer)
        self._set_reply_bytes(peer, 0)

    # Replies

    def count_replies(self, peer: ConnectedPeer) -> None:
        """Called when the memory of a connection's replies has changed noticeably."""
        waiting = peer.replies.waiting_bytes()
        if waiting != peer.reply_bytes:
            self._set_reply_bytes(peer, waiting)
            if self.reply_bytes > self.limits.reply_memory_bytes:
                self._close_unread()

    def count_all_replies(self) -> Iterator[None]:
        """Count the replies of all connections, once a second and in slices. Small replies to a peer that does not read
        are not counted otherwise."""
        stalled: set[ConnectedPeer] = set()
        for seen, peer in enumerate(list(self.connections)):
            if seen % _COUNTED_AT_ONCE == _COUNTED_AT_ONCE - 1:
                yield
            before, waiting = self._unsent_at_last_count.get(peer, 0), peer.replies.waiting_bytes()
            self._set_reply_bytes(peer, waiting)
            if waiting:
                unsent = self._unsent_at_last_count[peer] = peer.replies.unsent_bytes()
                if 0 < before <= unsent:
                    stalled.add(peer)
        self._stalled = stalled
        if self.reply_bytes > self.limits.reply_memory_bytes:
            self._close_unread()

    def _set_reply_bytes(self, peer: ConnectedPeer, waiting: int) -> None:
        self.reply_bytes += waiting - peer.reply_bytes
        peer.reply_bytes = waiting
        if waiting:
            self._unsent_at_last_count.setdefault(peer, 0)
        else:
            self._unsent_at_last_count.pop(peer, None)
            self._stalled.discard(peer)

    def _close_unread(self) -> None:
        for peer in list(self._unsent_at_last_count):  # most of them have read since the last count
            self._set_reply_bytes(peer, peer.replies.waiting_bytes())
        while self.reply_bytes > self.limits.reply_memory_bytes:
            most = max(self._unsent_at_last_count, key=lambda each: (each in self._stalled, each.reply_bytes))
            self._log_unread(most)
            self._set_reply_bytes(most, 0)
            most.abort()

    def _log_unread(self, peer: ConnectedPeer) -> None:
        self.closed_unread += 1
        now = time.monotonic()
        if now >= self._replies_logged + _LOG_EVERY_S:
            self._replies_logged = now
            text = (
                "unread replies exceed limits.reply_memory_mib; closed the connection with the most, "
                f"{peer.reply_bytes >> 20} MiB"
            )
            fields = {"closed": self.closed_unread, **peer.log.fields()}
            logs.event(log, logging.WARNING, "reply-memory", text, **fields)

    # Requests

    def add_incomplete(self, peer: ConnectedPeer, size: int) -> None:
        """The peer has sent `size` more bytes of an incomplete request."""
        peer.incomplete_bytes += size
        self.incomplete_bytes += size
        if self.incomplete_bytes > self.limits.request_memory_bytes:
            most = max(self.connections, key=lambda each: each.incomplete_bytes)
            self._log_incomplete(most)
            self.end_incomplete(most)
            most.abort()

    def end_incomplete(self, peer: ConnectedPeer) -> None:
        """The request is no longer in memory."""
        self.incomplete_bytes -= peer.incomplete_bytes
        peer.incomplete_bytes = 0

    def _log_incomplete(self, peer: ConnectedPeer) -> None:
        self.closed_incomplete += 1
        now = time.monotonic()
        if now >= self._requests_logged + _LOG_EVERY_S:
            self._requests_logged = now
            text = (
                "incomplete requests exceed limits.request_memory_mib; closed the connection with the most, "
                f"{peer.incomplete_bytes >> 20} MiB"
            )
            fields = {"closed": self.closed_incomplete, **peer.log.fields()}
            logs.event(log, logging.WARNING, "request-memory", text, **fields)
