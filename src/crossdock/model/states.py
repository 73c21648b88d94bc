"""The states of a job, and the table of allowed moves between them.

`apply` calls `move` before it writes a state.
"""

from enum import IntEnum
from typing import Final

from crossdock.model.errors import IllegalMove


class State(IntEnum):
    SCHEDULED = 0  #: waits for its due time
    BLOCKED = 1  #: waits for other jobs
    HELD = 2  #: waits for a throttle, for the commit of its batch, or for the batch before it
    READY = 3
    LEASED = 4
    RETRYING = 5  #: waits for its due time after a failure
    COMPLETE = 6  #: kept after success
    FAILED = 7  #: kept until an operator or a client retries or removes it
    DEAD = 8  #: not tried again, kept until it is purged (Faktory)
    GONE = 9  #: removed; only events name it


# Looked up once: reading a member of an enumeration costs as much as a call.
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

#: States with an index of their own, sorted by due time, or by the end of the lease for leased jobs.
INDEXED_STATES: Final = tuple(state for state in State if state not in (State.READY, State.GONE))


#: The job has ended and is kept.
OVER: Final = frozenset({State.COMPLETE, State.FAILED, State.DEAD})

_WAITING: Final = frozenset({State.SCHEDULED, State.BLOCKED, State.HELD, State.READY})
_ENDS: Final = OVER | {State.GONE}

#: A qless put moves a job from any state to a waiting one. A Workq complete or fail ends a job in any live state.
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
