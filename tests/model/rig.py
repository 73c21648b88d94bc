"""An engine on a bench: a clock pair set by hand, jitter under control, and a second memory that replays every event.

The second memory gets each event as the journal would give it back, through its encoding. So a value that cannot be
stored, an apply function that looks at more than its event, or a change made outside `apply` shows as a difference
between the two.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from crossdock.engine.decision import Topic
from crossdock.engine.engine import Engine, apply
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command
from crossdock.model.events import AnyEvent
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry

T = TypeVar("T")

#: 2026-11-15T17:55:45Z
BEGIN = Now(1_794_765_345.0, 1_000.0)


class FakeClock:
    """Both clocks of the server. Wall may jump either way, steady never does."""

    def __init__(self, now: Now = BEGIN) -> None:
        self.wall, self.steady = now.wall, now.steady

    @property
    def now(self) -> Now:
        return Now(self.wall, self.steady)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def jump(self, seconds: float) -> None:
        """Somebody set the clock."""
        self.wall = max(1.0, self.wall + seconds)

    def restart(self, wall: float, steady: float, newest: float) -> None:
        """Go on after a recovery as the server's own clock does after another boot: from the last batch's pair by the
        wall clock, as far as it is beyond the newest time of the journal, a week at most."""
        self.steady = steady + min(max(0.0, self.wall - max(wall, newest) if wall else 0.0), 7 * 86_400.0)


class Die(Random):
    """The engine's random source, with the retry jitter R (0…29) in the test's hand."""

    value = 0

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self.value if (start, stop, step) == (30, None, 1) else super().randrange(start, stop, step)


class Rig:
    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.die = Die(1)
        self.engine = Engine(EngineState(), self.die)
        self.replayed = EngineState()
        self.events: list[AnyEvent] = []
        self.batches: list[bytes] = []
        self.ready_queues: Sequence[Topic] = ()

    @property
    def state(self) -> EngineState:
        return self.engine.state

    @property
    def last(self) -> AnyEvent:
        return self.events[-1]

    def do(self, command: Command[T]) -> T:
        """One command, one batch."""
        events, outcome, self.ready_queues = self.engine.execute(command, self.clock.now)
        if events:
            self.events += events
            self.batches.append(
                encode_entry(JournalEntry(EVENT_VERSION, self.clock.now.wall, self.clock.now.steady, list(events)))
            )
            for event in decode_entry(self.batches[-1]).events:
                apply(self.replayed, event)
        return outcome

    def adopt(self, state: EngineState) -> None:
        """Go on with this memory, as after a recovery."""
        self.engine = Engine(state, self.die)


def fold(batches: Sequence[bytes]) -> EngineState:
    state = EngineState()
    for batch in batches:
        for event in decode_entry(batch).events:
            apply(state, event)
    return state
