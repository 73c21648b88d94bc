"""Policies as data on the job (model.md section 6): what differs between protocols is a value here, not a branch.

`Policy` values are interned: a million jobs with the same policy share one object.
"""

from enum import IntEnum
from typing import Final

import msgspec

from crossdock.model.states import State


class Backoff(IntEnum):
    """How long a failed job waits for its next try."""

    NONE = 0  #: no wait: ready at once, at its old sort key (Workq)
    POLYNOMIAL = 1  #: Faktory: count⁴ + 15 + R·(count + 1) s, R uniform in 0…29
    QUARTIC = 2  #: Masenko: failures⁴ s


class Disposition(IntEnum):
    """Where a job goes after its success or its last try."""

    GONE = 0
    DEAD = 1  #: kept for `DEAD_FOR`, can be retried
    COMPLETE = 2
    FAILED = 3
    DEAD_QUEUE = 4  #: moved to its dead queue as if new; removed if it names none (Masenko)


class LeaseExpiry(IntEnum):
    """What the expiry of a lease means for the job."""

    FAILURE = 0  #: a failure that is not final (Faktory, Masenko)
    RETURN = 1  #: ready at its old sort key, the attempt counted (Workq)
    DROP = 2  #: the job is removed (a foreground job)
    #: nothing by a timer: the next lease of the queue warns the holder, and a later one takes the job away (qless)
    LAZY = 3


class DependencyLoss(IntEnum):
    """What happens to a job when a dependency can never succeed."""

    FAILS_TOO = 0  #: it fails without another try, and so do its dependents (Masenko)
    WAITS_ON = 1  #: it waits while the failed dependency may be retried, and fails when that is removed (qless)


class Ending(IntEnum):
    """How a job ended, as far as it matters to its dependents."""

    SUCCESS = 1
    GONE = 2  #: removed without success
    KEPT = 3  #: failed and kept: it may be retried, so jobs with `WAITS_ON` keep waiting


#: Faktory keeps dead jobs for 180 days (faktory.md section 5.6).
DEAD_FOR: Final = 180 * 86_400.0

#: With more distinct policies than this, sharing is not worth its memory.
_INTERNED_AT_MOST: Final = 4_096


class Policy(msgspec.Struct, array_like=True, frozen=True, gc=False, cache_hash=True):
    max_failures: int = -1  #: failures after which another one ends the job; below 0: the first one does
    max_attempts: int = 0  #: leases after which a failure or a lease expiry ends the job; 0: no limit
    #: as the client gave it, 0: not given. The protocol that leases the job limits it to its own range
    lease_s: float = 0
    backoff: Backoff = Backoff.NONE
    exhausted: Disposition = Disposition.GONE
    success: Disposition = Disposition.GONE
    lease_expiry: LeaseExpiry = LeaseExpiry.FAILURE
    due_band: int = 1  #: the band of a job that its due time made ready: Masenko 0, Workq 2
    lost: DependencyLoss = DependencyLoss.FAILS_TOO


_interned: dict[Policy, Policy] = {}


def intern(policy: Policy) -> Policy:
    known = _interned.get(policy)
    if known is not None:
        return known
    if len(_interned) >= _INTERNED_AT_MOST:
        _interned.clear()  # jobs keep their policies; only sharing with later jobs is lost
    _interned[policy] = policy
    return policy


STATE_AFTER = {
    Disposition.GONE: State.GONE,
    Disposition.DEAD: State.DEAD,
    Disposition.COMPLETE: State.COMPLETE,
    Disposition.FAILED: State.FAILED,
}
