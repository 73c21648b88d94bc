"""One connection as commands, views and script handlers see it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crossdock.model.job import LeaseRef
from crossdock.protocols.base import Dispatcher

if TYPE_CHECKING:
    from crossdock.protocols.redis.commands.command import Command
    from crossdock.protocols.redis.protocol import RedisProtocol


class Context:
    def __init__(self, protocol: "RedisProtocol", dispatcher: Dispatcher, number: int) -> None:
        self.protocol = protocol
        self.dispatcher = dispatcher
        self.number = number  #: CLIENT ID
        self.resp3 = False
        self.identified = not protocol.has_password
        self.name = b""
        self.granted: list[LeaseRef] | None = None  #: by the request in hand; the session returns them with its answer
        self.database = 0
        #: MULTI's commands so far, None outside of it
        self.queued: list[tuple[Command, list[bytes]]] | None = None
        self.queued_bytes = 0
        self.spoilt = False  #: one of them was refused: EXEC refuses all
        self.watched: dict[bytes, int] = {}  #: keys and what they were like when WATCH named them
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.memo: dict[str, Any] = {}  #: what a dialect remembers of this connection, under its own name
        self.on_close: list[Callable[[], None]] = []  #: called once, when the connection is gone or RESET

    @property
    def subscriptions(self) -> int:
        return len(self.channels) + len(self.patterns)

    def grant(self, leases: list[LeaseRef]) -> None:
        """Add leases that the request in hand granted. If its reply does not reach the peer, they are given back."""
        if self.granted is None:
            self.granted = leases or None
        else:
            self.granted += leases  # a transaction may have thousands

    def hear(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        """A channel it listens to had something to say."""
        raise NotImplementedError

    def trust(self) -> None:
        """The peer gave the password, or needs none."""
        raise NotImplementedError

    def distrust(self) -> None:
        """As it was at the beginning (RESET)."""
        raise NotImplementedError
