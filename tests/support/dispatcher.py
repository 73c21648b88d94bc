"""A dispatcher without a server: the real engine with a manual clock.

Every event passes through the journal's encoding before it is applied. A value that cannot be stored, or changes when
it is stored, therefore fails in the test that produced it.
"""

from collections.abc import Callable, Sequence, Sized
from contextlib import AbstractContextManager
from random import Random
from typing import Protocol, TypeVar

from crossdock.engine.engine import Engine, apply
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command, ResolveDependents, Start, Tick, Ticked
from crossdock.model.commands.qless import FreeHeld
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.channels import Channels
from crossdock.server.group_commit import endings
from crossdock.server.lease_requests import ASKING, LeaseRequests
from crossdock.server.waiters import Waiters

T = TypeVar("T")

#: 2026-11-15T17:55:45Z
BEGIN = Now(1_794_765_345.0, 1_000.0)
NEVER = float("inf")


class Timed(Protocol):
    """An object with a deadline."""

    @property
    def until(self) -> float:
        """Monotonic time of the next deadline."""

    def late(self) -> None: ...


class Jitter(Random):
    """The engine's random source, with the retry jitter R (0…29) under control."""

    value = 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert (start, stop, step) == (30, None, 1), "the engine draws no other random number"
        return self.value


class StoringEngine(Engine):
    def apply(self, event: AnyEvent) -> None:
        super().apply(stored([event])[0])


class PlainDispatcher:
    def __init__(self, state: EngineState | None = None, now: Now = BEGIN) -> None:
        self.jitter = Jitter()
        self.state = state or EngineState()
        self.engine = StoringEngine(self.state, self.jitter, room=lambda: self.room)
        self.now = now
        self.ticked = Ticked()
        self.events: list[AnyEvent] = []
        self.waits = Waiters(lambda queue: self.engine.has_work(queue, self.now))
        self.lease_requests = LeaseRequests(self.waits.by_queue, now.steady)
        self.engine.watch(ASKING, self.lease_requests.note)
        self.channels = Channels()
        self.timed: list[Timed] = []
        self.slowness = 0.0  #: seconds that pass between two calls of held_up()
        self._held_up = 0.0
        self.room = NEVER  #: number of further jobs that are accepted
        self.full: str | None = None  #: what `no_room` returns
        self.herald: Callable[[Dispatcher, Sequence[AnyEvent]], None] = lambda dispatcher, events: None

    def do(self, command: Command[T]) -> T:
        events, outcome, ready_queues = self.engine.execute(command, self.now)
        self.events += events
        self.waits.notify(endings(events, self.waits.by_job))
        self.herald(self, events)
        self.waits.wake(ready_queues)
        return outcome

    def held_up(self) -> float:
        self._held_up += self.slowness
        return self._held_up

    @property
    def waiting(self) -> Sized:
        return self.waits.tickets

    def together(self) -> AbstractContextManager[None]:
        return self.waits.held()

    def publish(self, channel: bytes, text: bytes, *, to_patterns: bool = True) -> int:
        return self.channels.publish(channel, text, to_patterns=to_patterns)

    def no_room(self, jobs: int) -> str | None:
        return self.full

    def advance(self, seconds: float) -> None:
        """Advance the clock. Each deadline on the way is handled at its own time, as the server's timers do."""
        goal = self.now.steady + seconds
        while True:
            due_in = self.engine.due_in(self.now)
            due = NEVER if due_in is None else self.now.steady + due_in
            at = min([due, *(each.until for each in self.timed)])
            if at > goal:
                break
            self._pass(at - self.now.steady)
            if due <= at:
                self._tick()
            for each in [each for each in self.timed if each.until <= at]:
                each.late()
        self._pass(goal - self.now.steady)

    def _pass(self, seconds: float) -> None:
        self.now = Now(self.now.wall + seconds, self.now.steady + seconds)

    def _tick(self) -> None:
        done = self.do(Tick(500))
        self.ticked.scheduled += done.scheduled
        self.ticked.retried += done.retried
        self.ticked.expired += done.expired
        self.ticked.purged += done.purged
        self.ticked.ended += done.ended
        self.ticked.passes += 1
        if self.state.unresolved:
            self.do(ResolveDependents(500))
        if self.state.owed:
            self.do(FreeHeld(500))

    def restarted(self) -> "PlainDispatcher":
        """A dispatcher after a crash: replays the events, then runs the command that follows each recovery."""
        state = EngineState()
        for event in stored(self.events):
            apply(state, event)
        dispatcher = PlainDispatcher(state, self.now)
        dispatcher.events = list(self.events)
        dispatcher.jitter.value = self.jitter.value
        dispatcher.do(Start())
        return dispatcher


def stored(events: list[AnyEvent]) -> list[AnyEvent]:
    """The events as they are read back from the journal."""
    return decode_entry(encode_entry(JournalEntry(EVENT_VERSION, 0.0, 0.0, events))).events
