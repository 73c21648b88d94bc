"""The replies of one connection that are not sent yet, and the memory that they take.

The group commit releases replies in the order of their requests. A long reply is sent part by part: the next part is
made when the peer has read most of the one before. So a page of a hundred megabytes takes the memory of one part.
"""

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from crossdock.model.job import LeaseRef
from crossdock.server.flow_control import FlowControl

#: A reply longer than this many bytes is counted at once, and freed with its connection. Shorter ones are counted when
#: the peer does not read them, and once a second.
LARGE_REPLY: Final = 16 * 1024

#: How many times the reply buffer a subscriber may be behind. All messages of one pass arrive at once, however fast
#: the subscriber reads. Redis allows 8 MiB for a minute.
PUSHED_UNREAD: Final = 8


class Outlet(Protocol):
    """Takes a reply that the group commit has released."""

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None: ...


class Recipient(Outlet, Protocol):
    def deliver_large(self, reply: "LargeReply", leases: list[LeaseRef] | None) -> None: ...


#: `GroupCommit.reply`
Submit = Callable[[Outlet, bytes, list[LeaseRef] | None], None]


class LargeReply:
    """A large reply, or a part of a long one. The bytes are kept here and not in the group commit, so that they are
    freed at once when their connection is closed."""

    __slots__ = ("_recipient", "data", "is_part")

    def __init__(self, recipient: Recipient, data: bytes, *, is_part: bool) -> None:
        self._recipient = recipient
        self.data = data
        self.is_part = is_part  #: more follows once the socket has it

    def deliver(self, reply: bytes, leases: list[LeaseRef] | None) -> None:
        self._recipient.deliver_large(self, leases)


class ReplyQueue:
    __slots__ = (
        "_flow",
        "_large",
        "_limit",
        "_recipient",
        "_reserved",
        "_resized",
        "_submit",
        "_unsent",
        "lost",
        "unreleased",
    )

    def __init__(
        self, recipient: Recipient, submit: Submit, flow: FlowControl, limit: int, resized: Callable[[], None]
    ) -> None:
        """`limit`: bytes of replies after which no more requests are handled. `resized` is called when the memory of
        the replies has changed noticeably."""
        self._recipient = recipient
        self._submit = submit
        self._flow = flow
        self._limit = limit
        self._resized = resized
        self._large: set[LargeReply] = set()  #: of the unreleased ones
        self._reserved = 0  #: bytes that work in progress keeps for its reply
        #: Replies written since the peer stopped reading: their sizes, and the leases that they grant
        self._unsent: list[tuple[int, list[LeaseRef] | None]] = []
        self.unreleased = 0  #: bytes of replies that the group commit holds
        self.lost = False  #: nothing reaches the peer any more

    def send(self, reply: bytes, leases: list[LeaseRef] | None = None) -> None:
        if len(reply) > LARGE_REPLY:
            self._send_large(reply, leases, is_part=False)
        else:
            self.unreleased += len(reply)
            self._submit(self._recipient, reply, leases)

    def send_part(self, data: bytes) -> None:
        """A part of a long reply. It was counted as reserved, and is a reply now."""
        self._reserved = max(0, self._reserved - len(data))
        self._send_large(data, None, is_part=True)

    def _send_large(self, data: bytes, leases: list[LeaseRef] | None, *, is_part: bool) -> None:
        if self.lost:  # since the work began that made it
            data = b""
        reply = LargeReply(self._recipient, data, is_part=is_part)
        self.unreleased += len(data)
        self._large.add(reply)
        self._submit(reply, b"", leases)
        self._resized()

    def push(self, data: bytes) -> bool:
        """Send a message that the peer did not request, behind all replies. False: the peer has too much unread."""
        if self.unreleased + self._flow.buffered() + len(data) > PUSHED_UNREAD * self._limit:
            return False
        self.unreleased += len(data)
        self._submit(self._recipient, data, None)
        return True

    def released_large(self, reply: LargeReply) -> None:
        self._large.discard(reply)

    def reserve(self, size: int) -> None:
        """Work in progress keeps `size` more bytes for its reply."""
        self._reserved += size
        self._resized()

    def end_reserve(self) -> None:
        if self._reserved:
            self._reserved = 0
            self._resized()

    def is_full(self) -> bool:
        return self.unreleased > self._limit

    def waiting_bytes(self) -> int:
        """Memory of replies that are not sent yet, and of those that are being made."""
        return 0 if self.lost else self.unreleased + self._reserved + self._flow.buffered()

    def unsent_bytes(self) -> int:
        return 0 if self.lost else self._flow.buffered()

    def written_unread(self, size: int, leases: list[LeaseRef] | None) -> None:
        """A reply was written while the peer does not read."""
        self._unsent.append((size, leases))
        self._resized()

    def peer_reads(self) -> None:
        self._unsent.clear()
        self._resized()

    def unsent_leases(self) -> Iterator[list[LeaseRef]]:
        """Leases in replies that never reached the socket, newest first. The socket's buffer has not been below its low
        water since the peer stopped reading, so at least that many of the last bytes are still in it."""
        left = self._flow.low_water if self._flow.write_paused else 0
        while self._unsent and left > 0:
            size, leases = self._unsent.pop()
            left -= size
            if leases is not None:
                yield leases
        self._unsent.clear()

    def drop(self) -> None:
        """The peer is gone. Large replies are freed now: the group commit may hold them for a while."""
        self.lost = True
        for reply in self._large:
            self.unreleased -= len(reply.data)
            reply.data = b""
