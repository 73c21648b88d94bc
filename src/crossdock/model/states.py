"""The states of a job and the one table of moves between them.

Nothing else decides which change of state is allowed: `apply` asks `move` before it writes one.
"""

from enum import IntEnum
from typing import Final

from crossdock.model.errors import IllegalMove


class State(IntEnum):
    SCHEDULED = 0  #: waits for its due time
    BLOCKED = 1  #: waits for other jobs
    HELD = 2  #: waits for a throttle, a commit or a backlog
    READY = 3
    LEASED = 4
    RETRYING = 5  #: waits for its due time, with failures behind it
    COMPLETE = 6  #: kept after success
    FAILED = 7  #: kept, needs a person
    DEAD = 8  #: Faktory's: out of tries, kept until it expires
    GONE = 9  #: no longer in memory; only events remember it


# Looked up once: a member of an enumeration costs as much as a call.
READY: Final = State.READY
LEASED: Final = State.LEASED
SCHEDULED: Final = State.SCHEDULED
BLOCKED: Final = State.BLOCKED
HELD: Final = State.HELD
RETRYING: Final = State.RETRYING
COMPLETE: Final = State.COMPLETE
FAILED: Final = State.FAILED
DEAD: Final = State.DEAD
GONE: Final = State.GONE

#: States whose jobs stand on a shelf: sorted by when they are next due (leased ones by their lease's end).
SHELVED: Final = tuple(state for state in State if state not in (State.READY, State.GONE))


#: Ended, and kept.
OVER: Final = frozenset({State.COMPLETE, State.FAILED, State.DEAD})

_WAITING: Final = frozenset({State.SCHEDULED, State.BLOCKED, State.HELD, State.READY})
_ENDS: Final = OVER | {State.GONE}

#: A qless put moves a job from any state to a waiting one; a Workq complete or fail ends a job in any live state.
MOVES: Final[dict[State, frozenset[State]]] = {
    State.SCHEDULED: _WAITING | _ENDS,
    State.BLOCKED: _WAITING | _ENDS,
    State.HELD: _WAITING | _ENDS | {State.LEASED},
    State.READY: _WAITING | _ENDS | {State.LEASED},
    State.LEASED: _WAITING | _ENDS | {State.RETRYING},
    State.RETRYING: _WAITING | _ENDS,
    State.COMPLETE: _WAITING | {State.GONE},
    State.FAILED: _WAITING | {State.GONE},
    State.DEAD: _WAITING | {State.GONE, State.DEAD},
    State.GONE: frozenset(),
}


def move(before: State, after: State) -> State:
    if after not in MOVES[before]:
        raise IllegalMove(before, after)
    return after
