"""The port between a protocol's sessions and the connections that carry them. Sessions never see a socket."""

from collections.abc import Callable, Generator, Sequence, Sized
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from crossdock.engine.decision import Topic
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, GiveBack, Ticked
from crossdock.model.errors import CrossdockError
from crossdock.model.events import AnyEvent
from crossdock.model.job import LeaseRef, Number
from crossdock.protocols.channels import Channels


class ErrorReply(bytes):
    """A reply that is an error. Connections count these, and send them as any other bytes. Sessions mark them, so that
    other replies need no check."""

    __slots__ = ()


class Grant(msgspec.Struct, frozen=True, gc=False):
    """A reply that grants leases. If it does not reach the peer, the connection gives them back."""

    reply: bytes
    leases: list[LeaseRef]


class Close(NamedTuple):
    """A last reply, possibly empty. The connection is closed after it."""

    reply: bytes


class JobResult(NamedTuple):
    """The end of a job that a request waits for. The job may be gone when the request receives it."""

    settled: bool  #: completed or failed for good; False: removed without that
    ok: bool
    body: bytes
    lease_expired: bool = False  #: the job ended because its lease expired


class Wait(NamedTuple):
    """The request waits. `ask(late)` is called when one of the queues has work, and with late=True at the deadline.
    `on_result` is called in the step that ends the job."""

    queues: tuple[Topic, ...]  #: queues, or other things to wait on
    until: float  #: steady
    ask: "Callable[[bool], Answer]"
    job: Number = 0
    on_result: "Callable[[JobResult], Answer] | None" = None


class ReplyMemory(NamedTuple):
    """Bytes by which the unfinished reply has grown. They count as reply memory until the reply is sent."""

    size: int


#: Work on many jobs. Each step does one slice, and the return value is the answer. Other connections are served between
#: the steps. A step yields None to continue after them, or the seconds (float) to pause before the next step. Bytes are
#: a part of a long reply; the next step follows once the peer has received them. `ReplyMemory` reports growth.
Slices: TypeAlias = Generator[Any, None, bytes | Grant | Close | Wait]

Answer: TypeAlias = bytes | Grant | Close | Wait | Slices


T = TypeVar("T")


class Dispatcher(Protocol):
    @property
    def now(self) -> Now:
        """The time of the current request."""

    def held_up(self) -> float:
        """Seconds since the current step began. The difference of two calls is what the work between them cost the
        other connections."""

    @property
    def state(self) -> EngineState:
        """The engine's state, read-only."""

    @property
    def ticked(self) -> Ticked:
        """What the timers have done since the start."""

    @property
    def channels(self) -> Channels:
        """The subscriptions to published messages."""

    def do(self, command: Command[T]) -> T:
        """Decide and apply. The reply is sent only when the change is durable."""

    @property
    def waiting(self) -> Sized:
        """The requests that wait."""

    def together(self) -> AbstractContextManager[None]:
        """Make the changes inside one step: no waiting request is served before its end."""

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        """Publish a message. It is sent with the replies of this pass. Returns the number of subscribers."""

    def no_room(self, jobs: int) -> str | None:
        """The reason why this many new jobs cannot be accepted now. None: they can."""


def ask_again(dispatcher: Dispatcher, until: float, ask: Callable[[bool], Answer]) -> Slices:
    """Call `ask(late)`, as for a `Wait`, one slice a step until it returns an answer or a `Wait`."""
    while True:
        yield
        answer = ask(dispatcher.now.steady >= until)
        if isinstance(answer, bytes | Grant | Close | Wait):
            return answer


def give_back(dispatcher: Dispatcher, via: str, leases: list[LeaseRef]) -> None:
    """End leases that the peer never received: the jobs are ready again, and the attempts are not counted."""
    with suppress(CrossdockError):  # the server is stopping and decides nothing more
        dispatcher.do(GiveBack(via, leases))


#: `report(event, text)`: something about this peer that an operator should see in the log, such as a wrong password.
Report: TypeAlias = Callable[[str, str], None]


def unreported(event: str, text: str) -> None:
    """Until the connection sets its own."""


class Session(Protocol):
    identified: bool  #: past the handshake; until then the protocol's handshake deadline runs
    report: Report  #: set by the connection

    def greeting(self) -> bytes: ...

    @property
    def receive(self) -> Callable[[bytes], Sequence[Any]]:
        """Parse bytes into requests in one pass. An incomplete request is kept."""

    def handle(self, request: Any) -> Answer:
        """Execute one request. If it raises, the session has given back the leases that the request granted."""

    def broken(self) -> Answer | None:
        """The last reply if the peer's input cannot be parsed any further. None: it can."""

    def crowded(self, connections: int) -> Close | None:
        """The reply if the server has too many connections and this one, just identified, must close. None: it may
        stay."""

    def farewell(self) -> bytes:
        """The last reply when the server stops."""

    def closed(self) -> Slices | None:
        """The connection has closed, and leases that the peer never received were given back. Returns work that is
        left."""


@runtime_checkable
class IdleLimited(Protocol):
    """A session with an idle timeout."""

    idle_timeout_s: float  #: does not run while a reply is owed
    last_active: float  #: steady; when the peer last sent a request, or received a reply

    def close_idle(self) -> Close:
        """The idle timeout has passed."""


@runtime_checkable
class Subscriber(Protocol):
    """A session that sends messages its peer did not request (pub/sub)."""

    push: Callable[[bytes], None]  #: set by the connection; a peer that does not read is cut off


@runtime_checkable
class EventPublisher(Protocol):
    """A protocol that publishes events to its subscribers."""

    def publish(self, dispatcher: Dispatcher, events: Sequence[AnyEvent]) -> None: ...


@runtime_checkable
class PasswordProtected(Protocol):
    """A protocol with a password, which can change while the server runs."""

    def set_password(self, password: str) -> None: ...


class WireProtocol(Protocol):
    name: str
    handshake_s: float  #: deadline of the handshake; 0: there is none
    commands: int  #: executed since the start
    errors: int  #: `ErrorReply`s since the start, counted by the connections

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> Session: ...

    def tick(self, dispatcher: Dispatcher) -> None:
        """Called every few seconds for the protocol's own timers."""
