"""The port between a door's session and the connection that carries it. Sessions never see a socket."""

from collections.abc import Callable, Generator, Sequence, Sized
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, GiveBack, Ticked
from crossdock.model.errors import CrossdockError
from crossdock.model.events import AnyEvent
from crossdock.model.job import LeaseRef, Number
from crossdock.protocols.channels import Channels


class Grant(msgspec.Struct, frozen=True, gc=False):
    """A reply that grants leases. If it does not reach the peer, the connection gives them back."""

    reply: bytes
    leases: list[LeaseRef]


class Close(NamedTuple):
    """A last reply (maybe none), then the connection is closed."""

    reply: bytes


class JobResult(NamedTuple):
    """How a job ended that somebody waited for: it may be gone by the time it is told."""

    settled: bool  #: for good; False: it is gone without a settlement
    ok: bool
    body: bytes
    lapsed: bool = False  #: its lease ran out, and that was its end


class Wait(NamedTuple):
    """Nothing to say yet. `ask(late)` is called when one of the queues stirs, and with late=True at the deadline;
    `told` when the job ends, in the step that ended it."""

    queues: tuple[str | bytes, ...]  #: a key of the Redis door is named by its bytes
    until: float  #: steady
    ask: "Callable[[bool], Answer]"
    job: Number = 0
    told: "Callable[[JobResult], Answer] | None" = None


class ReplyMemory(NamedTuple):
    """So many bytes more are kept for the answer. They count as a reply that has not left until it is told."""

    size: int


#: Work on many jobs: one slice a step, and in the end what else could have been answered at once. Other connections are
#: served between the steps. Work that others must not feel yields the seconds (float) to rest before the next step;
#: None: go on once they were served. Bytes are a part of a long reply; the next step follows once the peer has them.
#: `ReplyMemory` tells what grows meanwhile.
Slices: TypeAlias = Generator[Any, None, bytes | Grant | Close | Wait]

Answer: TypeAlias = bytes | Grant | Close | Wait | Slices


T = TypeVar("T")


class Dispatcher(Protocol):
    @property
    def now(self) -> Now:
        """The instant of the request in hand."""

    def held_up(self) -> float:
        """Seconds since then, in which nobody else was served: what lies between two of them is somebody's doing."""

    @property
    def state(self) -> EngineState:
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


def again(dispatcher: Dispatcher, until: float, ask: Callable[[bool], Answer]) -> Slices:
    """`ask(late)`, as a `Wait` has it, until it answers at once or would wait."""
    while True:
        yield
        answer = ask(dispatcher.now.steady >= until)
        if isinstance(answer, bytes | Grant | Close | Wait):
            return answer


def give_back(dispatcher: Dispatcher, via: str, leases: list[LeaseRef]) -> None:
    """End leases that no reply tells of: the jobs are ready again, and the attempts are not counted."""
    with suppress(CrossdockError):  # the server is stopping and decides nothing more
        dispatcher.do(GiveBack(via, leases))


class Session(Protocol):
    identified: bool  #: past the handshake; until then the door's deadline runs

    def greeting(self) -> bytes: ...

    @property
    def receive(self) -> Callable[[bytes], Sequence[Any]]:
        """Bytes in, requests out, in one pass. Keeps what is not a whole request yet."""

    def handle(self, request: Any) -> Answer:
        """Execute one request. If it raises, the session has given back the leases that the request granted."""

    def broken(self) -> Answer | None:
        """The peer broke the grammar for good: what to say before closing. None: it did not."""

    def crowded(self, connections: int) -> Close | None:
        """The server has too many connections; this one, just identified, must go. None: it may stay all the same."""

    def farewell(self) -> bytes:
        """The last words when the server stops."""

    def closed(self) -> Slices | None:
        """The connection is gone, and what its peer never heard is given back. What is left to do, in slices."""


@runtime_checkable
class IdleLimited(Protocol):
    """A session whose peer may not be silent for long."""

    silence_s: float  #: how long, while it is owed no reply
    heard: float  #: steady; when it last spoke, or was answered

    def silent(self) -> Close:
        """It was."""


@runtime_checkable
class Subscriber(Protocol):
    """A session that tells its peer things it did not ask for (pub/sub)."""

    push: Callable[[bytes], None]  #: set by the connection; a peer that does not read is cut off


@runtime_checkable
class EventPublisher(Protocol):
    """A door that publishes what events mean to those who subscribed."""

    def tell(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None: ...


class WireProtocol(Protocol):
    name: str
    handshake_s: float  #: deadline for becoming identified; 0: a connection is, from its beginning

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> Session: ...

    def tick(self, dispatcher: Dispatcher) -> None:
        """Called every few seconds for what the door itself watches."""
