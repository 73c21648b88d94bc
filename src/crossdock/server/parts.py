"""A large reply, or a part of a long one, on its way through the turn to the socket.

A long reply is sent part by part: the next part is made when the peer has read most of the one before. So a page of a
hundred megabytes costs the server one part of it, and a peer that does not read costs no more.

The bytes are kept here and not in the turn, so that they go at once when their connection is closed.
"""

from typing import Protocol

from crossdock.model.job import Held


class Sender(Protocol):
    def deliver_large(self, reply: "LargeReply", granted: list[Held] | None) -> None: ...


class LargeReply:
    __slots__ = ("_sender", "data", "is_part")

    def __init__(self, sender: Sender, data: bytes, *, is_part: bool) -> None:
        self._sender = sender
        self.data = data
        self.is_part = is_part  #: more follows once the socket has it

    def deliver(self, reply: bytes, granted: list[Held] | None) -> None:
        self._sender.deliver_large(self, granted)
