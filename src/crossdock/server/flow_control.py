"""The socket under a connection: how much is read from it, whether its peer reads, and how it is closed.

Flow control goes both ways: a client that does not read is not read from, and what is read ahead is bounded.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Final, cast

from crossdock.server.limits import READ_AHEAD

#: A peer that was told goodbye may go on sending this long before it is cut off.
_LINGER_S: Final = 1.0


def low_water(unread_bytes: int) -> int:
    """A peer that left so many replies unread reads again when there are no more of them than this."""
    return unread_bytes * 3 // 4


class Flow(asyncio.Protocol, ABC):
    def __init__(self, loop: asyncio.AbstractEventLoop, unread_bytes: int) -> None:
        self._loop = loop
        self._unread_bytes = unread_bytes
        self._ahead = 0  #: bytes read since requests began to pile up
        self._reading = True
        self._choked = False  #: the peer does not read
        self._yielding = False  #: others are served before more is read: uvloop would read 8 MiB at once
        self._closing = False
        self._linger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._write = self._transport.write
        self._transport.set_write_buffer_limits(high=self._unread_bytes, low=low_water(self._unread_bytes))

    def _control_reading(self) -> None:
        """Read while the peer reads and what is read ahead is within bounds: so the end of a waiting peer is seen."""
        wanted = (not self._choked and self._ahead <= READ_AHEAD) or self._linger is not None
        reading = wanted and not self._yielding
        if reading is not self._reading and not self._transport.is_closing():
            self._reading = reading
            if reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _read_on(self) -> None:
        self._yielding = False
        self._control_reading()

    @abstractmethod
    def _go_on(self) -> None:
        """The peer reads again: what waited for that may be handled."""

    def pause_writing(self) -> None:
        self._choked = True
        self._control_reading()

    def resume_writing(self) -> None:
        self._choked = False
        self._control_reading()
        self._go_on()

    def is_closing(self) -> bool:
        return self._closing

    def _hang_up(self) -> None:
        """Close, but let the peer hear the last words: a socket closed with bytes unread would cut them off."""
        if self._transport.is_closing() or self._linger is not None:
            return
        self._linger = self._loop.call_later(_LINGER_S, self.abort)
        self._transport.write_eof()
        if not self._reading:
            self._reading = True
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once, without a word."""
        self._closing = True
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self._linger is not None:
            self._linger.cancel()
