"""A part of a long reply, on its way through the turn to the socket.

Who is sent a long reply is sent it part by part: the next one is made when the peer has read most of the one before. So
a page of a hundred megabytes costs the server one part of it, and a peer that does not read costs no more.
"""

from typing import Protocol

from crossdock.model.job import Held


class Sender(Protocol):
    def deliver(self, reply: bytes, granted: list[Held] | None) -> None: ...

    def parted(self) -> None:
        """The socket has this part."""


class Part:
    __slots__ = ("_sender",)

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def deliver(self, reply: bytes, granted: list[Held] | None) -> None:
        self._sender.deliver(reply, granted)
        self._sender.parted()
