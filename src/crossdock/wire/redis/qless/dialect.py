"""What differs between the generations of the unified script, as data (protocol page, qless 0 and 5.1)."""

from dataclasses import dataclass
from typing import Final

from crossdock.wire.redis.qless.clock import CALLERS, CallersClock


@dataclass(frozen=True, slots=True)
class Dialect:
    name: str
    old: bool = False  #: of 2013: `put` has no worker, errors name no job, and some checks are not made yet
    paged_by_end: bool = False  #: `failed` and `tag get` take the last index for a count
    in_scripts: bool = False  #: a script a command: data decoded, history in stages, no grace (page 6)
    by_seed: bool = False  #: as the document has it where its code did otherwise and no client minds (page 0)
    nameless: bool = False  #: errors name no job, and a few of a missing one are others
    throttled: bool = False  #: jobs name throttles, the queue's limit is one; heartbeats are not heard (page 10)
    paged: bool = False  #: `peek` takes an offset
    renamed: bool = False  #: reqless: an empty list is one, and history says `queue`
    queue: str = "queue"  #: what errors call the queue of a call that settles a job
    count: str = "count"  #: and a number of jobs
    php: bool = False  #: the PHP fork: a put may say how long a lease that ran out keeps its job waiting (page 11)
    # What this server is set to, whatever the generation:
    clock: CallersClock = CALLERS
    smaller_first: bool = False  #: as the seed says, and no client (page 0, conflict 1)
    fine: bool = False  #: the seed's histogram (conflict 5)
    keys_bytes: int = 2**63  #: of the plain keys that some of its commands write

    def turned(self, priority: float) -> int | float:
        """A caller's priority as the engine has it, and back: there the larger is served first."""
        return -priority if self.smaller_first else priority


UNIFIED: Final = Dialect("unified")
UNIFIED_2013: Final = Dialect("unified-2013", old=True, paged_by_end=True, nameless=True)
PER_SCRIPT: Final = Dialect("per-script", old=True, in_scripts=True, nameless=True)
SEED: Final = Dialect("seed", old=True, in_scripts=True, by_seed=True, nameless=True)
THROTTLES: Final = Dialect("throttles", nameless=True, throttled=True)
REQLESS_013: Final = Dialect("reqless-0.13", nameless=True, throttled=True, paged=True, queue="queue_name")
PHP: Final = Dialect("php", php=True)
REQLESS: Final = Dialect(
    "reqless", nameless=True, throttled=True, paged=True, renamed=True, queue="queue_name", count="limit"
)
