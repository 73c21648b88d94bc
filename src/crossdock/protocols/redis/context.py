"""The state of one connection, as commands, views and script handlers see it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from crossdock.model.job import LeaseRef
from crossdock.protocols.base import Dispatcher, Report, unreported

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
        self.report: Report = unreported
        self.granted: list[LeaseRef] | None = None  #: by the current request; the session sends them with its reply
        self.database = 0
        #: commands since MULTI; None outside a transaction
        self.queued: list[tuple[Command, list[bytes]]] | None = None
        self.queued_bytes = 0
        self.queue_failed = False  #: a queued command was refused, so EXEC refuses the transaction
        self.watched: dict[bytes, int] = {}  #: keys and their versions at the time of WATCH
        self.channels: dict[bytes, None] = {}
        self.patterns: dict[bytes, None] = {}
        self.memo: dict[str, Any] = {}  #: what qless and Resqu store for this connection, each under its own key
        self.on_close: list[Callable[[], None]] = []  #: called once, when the connection closes or is RESET

    @property
    def subscriptions(self) -> int:
        return len(self.channels) + len(self.patterns)

    def grant(self, leases: list[LeaseRef]) -> None:
        """Add leases that the current request granted. They are released if its reply does not reach the peer."""
        if self.granted is None:
            self.granted = leases or None
        else:
            self.granted += leases  # a transaction may grant thousands

    def deliver(self, pattern: bytes | None, channel: bytes, text: bytes) -> None:
        """Send a message of a channel to which this connection is subscribed."""
        raise NotImplementedError

    def set_authenticated(self) -> None:
        """The peer sent the right password, or needs none."""
        raise NotImplementedError

    def reset_authentication(self) -> None:
        """Require the password again (RESET)."""
        raise NotImplementedError
