"""What deciding gives: events for the journal, the outcome for the door, and the queues that stir."""

from collections.abc import Sequence
from math import inf, nextafter
from typing import TypeVar

from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.events import AnyEvent

T = TypeVar("T")

#: What somebody may wait on: a queue by its name, a key of the Redis door by its bytes.
Topic = str | bytes

#: (events, outcome, notices). A notice names a queue in which a job became ready, or a key that got something: who
#: waits on it is asked again.
Decision = tuple[Sequence[AnyEvent], T, Sequence[Topic]]


def later(state: EngineState, now: Now) -> float:
    """An event's `at`: the wall clock, but never before the event before it."""
    last = state.counters.at
    return now.wall if now.wall > last else last


def just_after(at: float) -> float:
    """The next instant there is. A job that joins the tail of a queue does so behind all that came at the same reading
    of the clock, and before all that come later at it: its event is a little later than theirs."""
    return nextafter(at, inf)


def purge_clock(state: EngineState, now: Now) -> float:
    """The steady time that purges go by. It stands still while they are held."""
    counters = state.counters
    return counters.held_at if now.steady < counters.held_until else now.steady
