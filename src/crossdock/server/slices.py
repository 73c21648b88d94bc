"""The slices of all long answers, in turn.

In each pass of the event loop they share a millisecond: a hundred clients that ask for much hold the others up no
longer than one does."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from crossdock.model.job import LeaseRef
from crossdock.server.limits import SLICES_S


class SliceQueue:
    __slots__ = ("_loop", "_scheduled", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def add(self, act: Callable[[], None]) -> None:
        """In the next pass, or a later one if there are many. One that adds itself again waits for the others."""
        self._waiting.append(act)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        waiting = self._waiting
        until = time.monotonic() + SLICES_S
        try:
            for _ in range(len(waiting)):
                waiting.popleft()()
                if time.monotonic() >= until:
                    break
        finally:  # one that fails must not stop the others
            self._scheduled = bool(waiting)
            if waiting:
                self._loop.call_soon(self._run)


# A large reply, or a part of a long one, on its way through the turn to the socket.
#
# A long reply is sent part by part: the next part is made when the peer has read most of the one before. So a page of a
# hundred megabytes costs the server one part of it, and a peer that does not read costs no more.
#
# The bytes are kept here and not in the turn, so that they go at once when their connection is closed.


class Sender(Protocol):
    def deliver_large(self, reply: "LargeReply", granted: list[LeaseRef] | None) -> None: ...


class LargeReply:
    __slots__ = ("_sender", "data", "is_part")

    def __init__(self, sender: Sender, data: bytes, *, is_part: bool) -> None:
        self._sender = sender
        self.data = data
        self.is_part = is_part  #: more follows once the socket has it

    def deliver(self, reply: bytes, granted: list[LeaseRef] | None) -> None:
        self._sender.deliver_large(self, granted)
