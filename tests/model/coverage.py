"""Counts the kinds of event and the state transitions of a run, and lists those that the engine makes.

`USED` is the part of `MOVES` that the engine makes, by the event that makes it; docs/explain/states.md shows it. A run
must see all of it and nothing else.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, Self, get_args

from crossdock.engine.state import EngineState
from crossdock.model import events as e
from crossdock.model.events import resqu as q
from crossdock.model.events.keyspace import KeyEvent
from crossdock.model.events.records import LoadEvent
from crossdock.model.states import State
from tests.model.values import KEPT

S = State
#: None: the job does not exist yet
Move = tuple[State | None, State]

KINDS: Final[tuple[type[e.Event], ...]] = get_args(e.AnyEvent)

#: Events of Resqu's commands. They have a reference of their own, as keys and bulk loads have.
RESQU_KINDS: Final = frozenset(get_args(e.ResquEvent))

#: Events of rate limits; tests/unit/engine/records/test_rates_at_random.py sees all of them.
RATE_KINDS: Final = frozenset({e.RatesSet, e.RateHeld, e.RatesOpened})

#: Events about jobs. The audit trail concerns none. Extensions of Faktory have tests of their own.
JOB_KINDS: Final = (
    frozenset(KINDS)
    - frozenset(get_args(KeyEvent))
    - frozenset(get_args(LoadEvent))
    - frozenset(get_args(e.ExtensionEvent))
    - RESQU_KINDS
    - RATE_KINDS
    - {e.Audited}
)

#: States in which a claim without a lease can settle a job
_UNLEASED: Final = (S.READY, S.SCHEDULED, S.RETRYING, S.BLOCKED)

USED: Final[dict[type[e.Event], frozenset[Move]]] = {
    e.Pushed: frozenset({(None, S.READY), (None, S.SCHEDULED), (None, S.BLOCKED)}),
    e.BatchCallbackPushed: frozenset({(None, S.READY)}),
    e.Spawned: frozenset({(None, S.READY)}),
    e.Leased: frozenset({(S.READY, S.LEASED)}),
    e.Succeeded: frozenset(
        {(before, after) for before in (S.LEASED, *_UNLEASED) for after in (S.GONE, S.COMPLETE)},
    ),
    e.Failed: frozenset(
        {(S.LEASED, after) for after in (S.RETRYING, S.READY, S.DEAD, S.FAILED, S.GONE)}
        | {(before, after) for before in _UNLEASED for after in (S.DEAD, S.FAILED, S.GONE)}
        | {(S.BLOCKED, S.READY), (S.SCHEDULED, S.READY), (S.RETRYING, S.READY)},
    ),
    e.LeaseExpired: frozenset({(S.LEASED, S.READY)}),
    e.Returned: frozenset({(S.LEASED, S.READY)}),
    e.Started: frozenset({(S.LEASED, S.READY)}),
    e.Readied: frozenset({(before, S.READY) for before in (S.SCHEDULED, S.RETRYING, S.DEAD, S.BLOCKED)}),
    e.Scheduled: frozenset({(S.BLOCKED, S.SCHEDULED)}),
    e.Buried: frozenset({(before, S.DEAD) for before in (*_UNLEASED, S.DEAD)}),
    e.Removed: frozenset({(before, S.GONE) for before in KEPT}),
    e.Rerouted: frozenset(),
}


_WAITING: Final = (S.READY, S.SCHEDULED, S.BLOCKED)
_ANY: Final = (S.SCHEDULED, S.BLOCKED, S.HELD, S.READY, S.LEASED, S.RETRYING, S.COMPLETE, S.FAILED, S.DEAD)

#: As `USED`, for events of qless commands; tests/qless/test_walk.py sees all of it.
MOVED: Final[dict[type[e.Event], frozenset[Move]]] = {
    e.Moved: frozenset({(before, after) for before in _ANY for after in _WAITING if before is not after}),
    e.Advanced: frozenset({(S.LEASED, after) for after in _WAITING}),
    e.Revived: frozenset({(S.FAILED, S.READY)}),
    e.Stalled: frozenset({(S.LEASED, S.READY)}),
    e.DependenciesEdited: frozenset({(S.BLOCKED, S.READY)}),
    e.Recurred: frozenset({(None, S.READY), *((before, S.READY) for before in _ANY if before is not S.READY)}),
    e.Held: frozenset({(S.READY, S.HELD)}),
    e.Unheld: frozenset({(S.HELD, S.READY)}),
    e.Surfaced: frozenset({(before, S.READY) for before in _ANY if before is not S.READY}),
}

#: As `USED`, for events of Resqu commands and of other commands on jobs in batches and buffers;
#: tests/model/test_resqu_simulation.py sees all of it.
HELD: Final[dict[type[e.Event], frozenset[Move]]] = {
    q.ResquBatchPushed: frozenset({(None, S.HELD)}),
    e.Leased: frozenset({(S.HELD, S.LEASED)}),
    e.LeaseExpired: frozenset({(S.LEASED, S.HELD)}),
    e.Returned: frozenset({(S.LEASED, S.HELD)}),
    e.Buried: frozenset({(S.HELD, S.DEAD)}),
    e.Removed: frozenset({(S.HELD, S.GONE)}),
    e.Rerouted: frozenset({(S.HELD, S.READY)}),
    q.ResquBatchFinished: frozenset({(S.HELD, S.READY)}),
    q.Taken: frozenset({(S.READY, S.HELD)}),
    q.PutOnQueue: frozenset({(S.HELD, S.READY)}),
    q.Rescheduled: frozenset({(S.LEASED, S.READY), (S.LEASED, S.SCHEDULED)}),
}

#: As `USED`, for events of rate limits.
RATED: Final[dict[type[e.Event], frozenset[Move]]] = {
    e.RateHeld: frozenset({(S.READY, S.HELD)}),
    e.RatesOpened: frozenset({(S.HELD, S.READY)}),
}

#: qless events without a state transition.
UNMOVED: Final = frozenset(
    {
        e.Warned,
        e.Reprioritised,
        e.Tagged,
        e.Noted,
        e.Configured,
        e.Watched,
        e.Unwatched,
        e.WorkerSeen,
        e.WorkersForgotten,
        e.IntervalSet,
        e.IntervalCleared,
        e.ThrottleSet,
        e.ThrottleFreed,
    }
)


class Coverage:
    def __init__(self) -> None:
        self.kinds: Counter[type[e.Event]] = Counter()
        self.moves: Counter[tuple[type[e.Event], Move]] = Counter()

    def __iadd__(self, other: "Coverage") -> Self:
        self.kinds += other.kinds
        self.moves += other.moves
        return self

    def before(self, state: EngineState, event: e.AnyEvent) -> dict[int, State | None]:
        """The states of the event's jobs before it is applied."""
        return {number: job.state if (job := state.jobs.get(number)) else None for number in _about(state, event)}

    def after(self, state: EngineState, event: e.AnyEvent, before: dict[int, State | None]) -> None:
        self.kinds[type(event)] += 1
        for number, was in before.items():
            job = state.jobs.get(number)
            now = job.state if job else State.GONE
            if was is not now or isinstance(event, e.Buried):
                self.moves[type(event), (was, now)] += 1


def _about(state: EngineState, event: e.AnyEvent) -> Iterator[int]:
    if isinstance(event, e.Pushed):
        yield from range(event.number, event.number + len(event.specs))
    elif isinstance(event, e.JobEvent | e.BatchCallbackPushed | e.Spawned | e.Renewed):
        if event.number:  # 0: no job was created
            yield event.number
    elif isinstance(event, e.Recurred):
        for number, spec in enumerate(event.specs, event.number):  # a job with that jid is overwritten
            yield from [job.number for job in state.named(spec.jid)] or [number]
    elif isinstance(event, q.ResquBatchPushed):
        yield event.number
    elif isinstance(event, q.ResquBatchFinished):
        yield from (number for (number,) in state.resqu.lanes[event.name])
    elif isinstance(
        event,
        e.Readied | e.Scheduled | e.Buried | e.Removed | e.Rerouted | e.Revived | e.Unheld | q.PutOnQueue,
    ):
        yield from (row.number for row in event.rows)
    elif isinstance(event, e.Started):
        yield from (number for _, number in state.by_state[State.LEASED])
