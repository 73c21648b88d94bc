"""Policies as data on the job (MODEL section 6): what differs between protocols is a value here, never a branch.

A `Policy` value is interned: a million jobs pushed alike share one object.
"""

from enum import IntEnum
from typing import Final

import msgspec

from crossdock.model.states import State


class Backoff(IntEnum):
    """How long a failed job waits for its next try."""

    NONE = 0  #: not at all: ready at once, in its old place (Workq)
    POLYNOMIAL = 1  #: Faktory: count⁴ + 15 + R·(count + 1) s, R uniform in 0…29
    QUARTIC = 2  #: Masenko: failures⁴ s


class Disposition(IntEnum):
    """Where a job goes when it has succeeded, or has used up its tries."""

    GONE = 0
    DEAD = 1  #: kept for `DEAD_FOR`, can be brought back
    COMPLETE = 2
    FAILED = 3
    DEAD_QUEUE = 4  #: moved to the job's dead queue as if new; without one it is gone (Masenko)


class LeaseExpiry(IntEnum):
    """What a lease that ran out means for its job."""

    FAILURE = 0  #: a failure that is not final (Faktory, Masenko)
    RETURN = 1  #: back to its old place, the attempt counted (Workq)
    DROP = 2  #: gone (a foreground job)
    LAZY = 3  #: nothing by itself: whoever leases next warns the holder, and the next time takes it away (qless)


class DependencyLoss(IntEnum):
    """What becomes of a job when one that it needs can never succeed."""

    FAILS_TOO = 0  #: its tries are over, as are its dependents' (Masenko)
    WAITS_ON = 1  #: it waits for one that failed, which may be brought back; it fails when that is gone (qless)


class Ending(IntEnum):
    """How a job ended, as far as it matters to the jobs that need it."""

    SUCCESS = 1
    GONE = 2  #: without success
    KEPT = 3  #: it failed and may be brought back, so jobs that are `WAITS_ON` wait on


#: Faktory keeps dead jobs 180 days (protocols/faktory.md 5.6).
DEAD_FOR: Final = 180 * 86_400.0

#: Beyond this many distinct rules, sharing is not worth its memory.
_INTERNED_AT_MOST: Final = 4_096


class Policy(msgspec.Struct, array_like=True, frozen=True, gc=False, cache_hash=True):
    max_failures: int = -1  #: failures after which another one ends the job; below 0: the first ends it
    max_attempts: int = 0  #: leases after which a failure or a lapse ends the job; 0: no limit
    lease_s: float = 0  #: as the creator gave it, 0: not given. The leasing door clamps it to its own range
    backoff: Backoff = Backoff.NONE
    exhausted: Disposition = Disposition.GONE
    success: Disposition = Disposition.GONE
    lease_expiry: LeaseExpiry = LeaseExpiry.FAILURE
    due_band: int = 1  #: the band of a job made ready by its due time: Masenko 0, Workq 2
    lost: DependencyLoss = DependencyLoss.FAILS_TOO


_interned: dict[Policy, Policy] = {}


def intern(policy: Policy) -> Policy:
    known = _interned.get(policy)
    if known is not None:
        return known
    if len(_interned) >= _INTERNED_AT_MOST:
        _interned.clear()  # jobs keep their own; only sharing with later ones is lost
    _interned[policy] = policy
    return policy


STATE_AFTER = {
    Disposition.GONE: State.GONE,
    Disposition.DEAD: State.DEAD,
    Disposition.COMPLETE: State.COMPLETE,
    Disposition.FAILED: State.FAILED,
}
