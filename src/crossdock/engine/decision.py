"""The result of a decision: events for the journal, the outcome for the protocol, and the queues that are ready."""

from collections.abc import Sequence
from math import inf, nextafter
from typing import NamedTuple, TypeAlias, TypeVar

from crossdock.engine.state import EngineState
from crossdock.model.clock import Now
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import AnyEvent

T = TypeVar("T")


class ProgressOf(NamedTuple):
    """The progress of a jid, as something to wait on."""

    jid: str


#: What a client may wait on: a queue by its name, a key of the Redis protocol by its bytes, or the progress of a job.
Topic = str | bytes | ProgressOf

#: (events, outcome, ready queues). A ready queue has a new ready job, or room for one. A ready key has a new value. The
#: server offers them to the clients that wait on them.
Decision = tuple[Sequence[AnyEvent], T, Sequence[Topic]]


#: What the events of a change affected. Apply functions add to it, and `Engine.execute` decides what follows in the
#: same change. Recovery ignores it, because the events that followed are in the same journal entry.
FollowUps: TypeAlias = list[FollowUp]


def later(state: EngineState, now: Now) -> float:
    """The time of a new event: the wall clock, but never before the last event."""
    last = state.counters.at
    return now.wall if now.wall > last else last


def just_after(at: float) -> float:
    """The smallest later time. A job that joins the tail of a queue must come after all jobs with the same clock
    reading and before all later ones, so its event is a little later than theirs.
    """
    return nextafter(at, inf)


def purge_clock(state: EngineState, now: Now) -> float:
    """The steady time that purges use. It stands still while purges are on hold."""
    counters = state.counters
    return counters.held_at if now.steady < counters.held_until else now.steady
