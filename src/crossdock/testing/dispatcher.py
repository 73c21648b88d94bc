"""A dispatcher in this process: the engine with a manual clock, without a journal, sockets or an event loop."""

from collections.abc import Callable, Sequence, Sized
from contextlib import AbstractContextManager
from math import inf
from typing import Final, Protocol, TypeVar

from crossdock.engine.engine import Engine
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, ResolveDependents, Tick, Ticked
from crossdock.model.commands.qless import FreeHeld
from crossdock.model.events import AnyEvent
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.channels import Channels
from crossdock.server.endings import endings
from crossdock.server.lease_requests import ASKING, LeaseRequests
from crossdock.server.waiters import Waiters

T = TypeVar("T")

#: Jobs that one tick changes.
_SLICE: Final = 500


class Timed(Protocol):
    """An object with a deadline."""

    @property
    def until(self) -> float:
        """Steady time of the next deadline."""

    def late(self) -> None: ...


class LocalDispatcher:
    """The dispatcher of sessions in this process. Time passes only by `advance`."""

    def __init__(self, engine: Engine, now: Now) -> None:
        self.engine = engine
        self.state = engine.state
        self.now = now
        self.ticked = Ticked()
        self.waits = Waiters(lambda queue: self.engine.has_work(queue, self.now))
        self.lease_requests = LeaseRequests(self.waits.by_queue, now.steady)
        engine.watch(ASKING, self.lease_requests.note)
        self.channels = Channels()
        self.timed: list[Timed] = []
        #: Publishes events on channels
        self.herald: Callable[[Dispatcher, Sequence[AnyEvent]], None] = lambda dispatcher, events: None

    def do(self, command: Command[T]) -> T:
        self.lease_requests.sort_if_many()
        events, outcome, ready_queues = self.engine.execute(command, self.now)
        self.executed(events)
        self.waits.notify(endings(events, self.waits.by_job))
        self.herald(self, events)
        self.waits.wake(ready_queues)
        return outcome

    def executed(self, events: Sequence[AnyEvent]) -> None:
        """Called with the events of each command, before requests that wait are answered."""

    def held_up(self) -> float:
        return 0.0

    @property
    def waiting(self) -> Sized:
        return self.waits.tickets

    def together(self) -> AbstractContextManager[None]:
        return self.waits.held()

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        return self.channels.publish(channel, text, to_patterns=to_patterns)

    def no_room(self, jobs: int) -> str | None:
        return None

    def advance(self, seconds: float) -> None:
        """Advance the clock. Each deadline on the way is handled at its own time, as the server's timers do."""
        goal = self.now.steady + seconds
        while (at := self.next_deadline()) <= goal:
            self.reach(at)
        self._pass(goal - self.now.steady)

    def next_deadline(self) -> float:
        """Steady time of the next deadline. Infinite: there is none."""
        due_in = self.engine.due_in(self.now)
        due = inf if due_in is None else self.now.steady + due_in
        return min([due, *(each.until for each in self.timed)])

    def reach(self, at: float) -> None:
        """Advance the clock to the next deadline and handle everything that is due then."""
        due_in = self.engine.due_in(self.now)
        is_due = due_in is not None and self.now.steady + due_in <= at
        self._pass(at - self.now.steady)
        if is_due:
            self._tick()
        for each in [each for each in self.timed if each.until <= at]:
            each.late()

    def _pass(self, seconds: float) -> None:
        self.now = Now(self.now.wall + seconds, self.now.steady + seconds)

    def _tick(self) -> None:
        done = self.do(Tick(_SLICE))
        self.ticked.scheduled += done.scheduled
        self.ticked.retried += done.retried
        self.ticked.expired += done.expired
        self.ticked.purged += done.purged
        self.ticked.ended += done.ended
        self.ticked.passes += 1
        if self.state.unresolved:
            self.do(ResolveDependents(_SLICE))
        if self.state.owed:
            self.do(FreeHeld(_SLICE))
