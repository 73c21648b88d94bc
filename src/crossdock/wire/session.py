"""The port between a door's session and the connection that carries it. Sessions never see a socket."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from crossdock.model.events import AnyEvent
from crossdock.model.job import Held
from crossdock.wire.answer import Answer, Bye, Slices
from crossdock.wire.desk import Desk


class Session(Protocol):
    identified: bool  #: past the handshake; until then the door's deadline runs
    granted: list[Held] | None  #: leases the answer in hand tells of; the connection takes them over with it

    def greeting(self) -> bytes: ...

    @property
    def receive(self) -> Callable[[bytes], Sequence[Any]]:
        """Bytes in, requests out, in one pass. Keeps what is not a whole request yet."""

    def handle(self, request: Any) -> Answer:
        """Carry out one request."""

    def broken(self) -> Answer | None:
        """The peer broke the grammar for good: what to say before closing. None: it did not."""

    def crowded(self, connections: int) -> Bye | None:
        """The server has too many connections; this one, just identified, must go. None: it may stay all the same."""

    def farewell(self) -> bytes:
        """The last words when the server stops."""

    def closed(self) -> Slices | None:
        """The connection is gone, and what its peer never heard is given back. What is left to do, in slices."""


@runtime_checkable
class Watched(Protocol):
    """A session whose peer may not be silent for long."""

    silence_s: float  #: how long, while it is owed no reply
    heard: float  #: steady; when it last spoke, or was answered

    def silent(self) -> Bye:
        """It was."""


@runtime_checkable
class Told(Protocol):
    """A session that tells its peer things it did not ask for (pub/sub)."""

    push: Callable[[bytes], None]  #: set by the connection; a peer that does not read is cut off


@runtime_checkable
class Herald(Protocol):
    """A door that publishes what events mean to those who subscribed."""

    def tell(self, desk: Desk, events: Sequence[AnyEvent]) -> None: ...


class Door(Protocol):
    name: str
    handshake_s: float  #: deadline for becoming identified; 0: a connection is, from its beginning

    def session(self, desk: Desk, hang_up: Callable[[], None]) -> Session: ...

    def tick(self, desk: Desk) -> None:
        """Called every few seconds for what the door itself watches."""
