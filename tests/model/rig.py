"""An engine with a fake clock pair, controlled jitter, and a second state to which every event is replayed.

The second state receives each event through the journal's encoding. So a value that cannot be stored, an apply function
that reads more than its event, and a change made outside `apply` show as a difference between the two states.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from crossdock.engine.decision import ProgressOf, Topic
from crossdock.engine.engine import Engine, apply
from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import Command
from crossdock.model.events import AnyEvent, ProgressDated
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry

T = TypeVar("T")

#: 2026-11-15T17:55:45Z
BEGIN = Now(1_794_765_345.0, 1_000.0)


class FakeClock:
    """Both clocks of the server. The wall clock may jump either way; the steady clock never does."""

    def __init__(self, now: Now = BEGIN) -> None:
        self.wall, self.steady = now.wall, now.steady

    @property
    def now(self) -> Now:
        return Now(self.wall, self.steady)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back."""
        self.wall = max(1.0, self.wall + seconds)

    def restart(self, wall: float, steady: float, newest: float) -> None:
        """Continues the steady clock after a reboot, as the server does: from the last journal entry on, by the time
        that the wall clock is beyond the newest time of the journal, at most a week."""
        self.steady = steady + min(max(0.0, self.wall - max(wall, newest) if wall else 0.0), 7 * 86_400.0)


class Die(Random):
    """The engine's random source. The test sets the retry jitter (0 to 29)."""

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
        self.batches: list[bytes] = []  #: journal entries
        self.ready_queues: Sequence[Topic] = ()

    @property
    def state(self) -> EngineState:
        return self.engine.state

    @property
    def last(self) -> AnyEvent:
        return self.events[-1]

    def do(self, command: Command[T]) -> T:
        """Executes a command and encodes its events as one journal entry."""
        events, outcome, topics = self.engine.execute(command, self.clock.now)
        changed = {topic.jid for topic in topics if isinstance(topic, ProgressOf)}
        self.ready_queues = [topic for topic in topics if not isinstance(topic, ProgressOf)] if changed else topics
        assert changed == {jid for event in events if isinstance(event, ProgressDated) for jid in event.jids}
        if events:
            self.events += events
            self.batches.append(
                encode_entry(JournalEntry(EVENT_VERSION, self.clock.now.wall, self.clock.now.steady, list(events)))
            )
            for event in decode_entry(self.batches[-1]).events:
                apply(self.replayed, event)
        return outcome

    def adopt(self, state: EngineState) -> None:
        """Continues with this state, as after a recovery."""
        self.engine = Engine(state, self.die)


def fold(entries: Sequence[bytes]) -> EngineState:
    """The state after all events of these journal entries."""
    state = EngineState()
    for entry in entries:
        for event in decode_entry(entry).events:
            apply(state, event)
    return state
