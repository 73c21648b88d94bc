"""Flow control of one socket, in both directions.

While a client does not read its replies, nothing is read from it. Requests are read ahead up to a bound.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from crossdock.server.clock import LoopClock

#: Bytes of one read that are parsed in each pass of the event loop. That takes less than a millisecond.
PIECE: Final = 8 * 1024

#: Bytes that are read ahead while a request blocks. Then the socket is not read until the queued requests are handled.
READ_AHEAD: Final = 64 * 1024

#: Seconds that a closing connection goes on reading, so that its last reply reaches the peer.
_LINGER_S: Final = 1.0

#: Requests of one connection that are handled in one pass of the event loop.
REQUESTS_A_PASS: Final = 64

#: A pass handles no further request of a connection after this many seconds: several slow requests in a row delay
#: other connections by one of them.
PASS_S: Final = 0.000_25


class FlowControl:
    """Pauses and resumes reading, knows whether the peer reads, and closes the socket."""

    __slots__ = (
        "_clock",
        "_linger",
        "_reply_buffer",
        "_transport",
        "is_tls",
        "read_ahead",
        "reading",
        "write",
        "write_paused",
        "yielding",
    )

    def __init__(self, clock: LoopClock, reply_buffer: int) -> None:
        """`reply_buffer`: bytes that the socket may hold before writing is paused."""
        self._clock = clock
        self._reply_buffer = reply_buffer
        self._linger: asyncio.TimerHandle | None = None
        self.read_ahead = 0  #: bytes of requests that were read while requests are queued
        self.reading = True
        self.write_paused = False  #: the peer does not read
        self.yielding = False  #: other connections are served before more is read; uvloop would read up to 8 MiB

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_tls = transport.get_extra_info("ssl_object") is not None
        self.write: Callable[[bytes], None] = transport.write
        transport.set_write_buffer_limits(high=self._reply_buffer, low=self.low_water)

    @property
    def low_water(self) -> int:
        """Writing is resumed when the buffer has shrunk to this many bytes."""
        return self._reply_buffer * 3 // 4

    def update(self) -> None:
        """Read while the peer reads and the read-ahead is within its bound. A peer that waits for a reply is read from
        as well, so that a closed connection is noticed."""
        wanted = (not self.write_paused and self.read_ahead <= READ_AHEAD) or self._linger is not None
        reading = wanted and not self.yielding
        if reading is not self.reading and not self._transport.is_closing():
            self.reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def add_read_ahead(self, size: int) -> None:
        self.read_ahead += size
        self.update()

    def pause_writing(self) -> None:
        self.write_paused = True
        self.update()

    def resume_writing(self) -> None:
        self.write_paused = False
        self.update()

    def yield_to_others(self) -> None:
        """Stop reading until `end_yield`."""
        self.yielding = True
        self.update()

    def end_yield(self) -> None:
        self.yielding = False
        self.update()

    def buffered(self) -> int:
        """Bytes that the socket has not taken."""
        return self._transport.get_write_buffer_size()

    def peer_name(self) -> str:
        """For the log."""
        peer = self._transport.get_extra_info("peername")
        if not isinstance(peer, tuple):
            return "unix"
        host, port = peer[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def close_gracefully(self, abort: Callable[[], None]) -> None:
        """Send what is buffered, then close. `abort` is called if the peer does not close its side in time. Reading
        goes on meanwhile: closing a socket with unread bytes would discard the last reply."""
        if self._transport.is_closing() or self._linger is not None:
            return
        self._linger = self._clock.call_later(_LINGER_S, abort)
        if self.is_tls:  # it has no half-closed state; closing sends what is buffered
            self._transport.close()
            return
        self._transport.write_eof()
        if not self.reading:
            self.reading = True
            self._transport.resume_reading()

    def close(self) -> None:
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def detach(self) -> None:
        """Cancel the timer of a lost connection."""
        if self._linger is not None:
            self._linger.cancel()
