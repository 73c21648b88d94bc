"""A dispatcher without a server: the real engine with a manual clock.

Every event passes through the journal's encoding before it is applied. A value that cannot be stored, or changes when
it is stored, therefore fails in the test that produced it.
"""

from collections.abc import Sequence
from random import Random

from crossdock.engine.engine import Engine, apply
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Start
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry
from crossdock.testing.dispatcher import LocalDispatcher

#: 2026-11-15T17:55:45Z
BEGIN = Now(1_794_765_345.0, 1_000.0)
NEVER = float("inf")


class Jitter(Random):
    """The engine's random source, with the retry jitter R (0…29) under control."""

    value = 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        assert (start, stop, step) == (30, None, 1), "the engine draws no other random number"
        return self.value


class StoringEngine(Engine):
    def apply(self, event: AnyEvent) -> None:
        super().apply(stored([event])[0])


class PlainDispatcher(LocalDispatcher):
    def __init__(self, state: EngineState | None = None, now: Now = BEGIN) -> None:
        self.jitter = Jitter()
        super().__init__(StoringEngine(state or EngineState(), self.jitter, room=lambda: self.room), now)
        self.events: list[AnyEvent] = []
        self.slowness = 0.0  #: seconds that pass between two calls of held_up()
        self._held_up = 0.0
        self.room = NEVER  #: number of further jobs that are accepted
        self.full: str | None = None  #: what `no_room` returns

    def executed(self, events: Sequence[AnyEvent]) -> None:
        self.events += events

    def held_up(self) -> float:
        self._held_up += self.slowness
        return self._held_up

    def no_room(self, jobs: int) -> str | None:
        return self.full

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
