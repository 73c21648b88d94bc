"""Where a session brings its commands. The server's turn is one; a test's plain engine is another."""

from collections.abc import Sized
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from crossdock.engine.state import Memory
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, Ticked
from crossdock.wire.channels import Channels

T = TypeVar("T")


class Desk(Protocol):
    @property
    def now(self) -> Now:
        """The instant of the request in hand."""

    def held_up(self) -> float:
        """Seconds since then, in which nobody else was served: what lies between two of them is somebody's doing."""

    @property
    def memory(self) -> Memory:
        """The engine's state, to read."""

    @property
    def ticked(self) -> Ticked:
        """What the timers did since the start."""

    @property
    def channels(self) -> Channels:
        """Who listens to what is published."""

    def do(self, command: Command[T]) -> T:
        """Decide and apply. The reply that tells of it leaves only when it is durable."""

    @property
    def waiting(self) -> Sized:
        """Those who wait for something."""

    def together(self) -> AbstractContextManager[None]:
        """What is done inside is one step to those who wait: nobody is served in between."""

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        """Tell those who listen. It leaves with the replies of this turn. How many there are."""

    def no_room(self, jobs: int) -> str | None:
        """Why so many new jobs cannot be taken in now, None if they can."""
