"""Hooks: what a protocol adds to the handling of its jobs.

There is one table per hook. Its key is the class of a job's protocol data. The rest of the engine looks there, so it
names no protocol. A job without protocol data costs one test, and a protocol that adds nothing to a hook has no entry.

`engine.engine` fills the tables, and `EngineState` cannot be made before that. So the server, recovery and the
compactor apply events with the same hooks.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from uuid import UUID

from crossdock.model.clock import Now
from crossdock.model.errors import UsageError
from crossdock.model.job import Job, Lease, Spec
from crossdock.model.protocol_data import ProtocolData
from crossdock.model.records import Schedule

if TYPE_CHECKING:
    from crossdock.engine.decision import FollowUps
    from crossdock.engine.state import EngineState, Lock
    from crossdock.model.events import AnyEvent, Failed, Leased, Readied, Rerouted, Succeeded

F = TypeVar("F")

Table: TypeAlias = dict[type[ProtocolData], F]


class JobBatch(Protocol):
    """A batch that holds jobs until it is their turn."""

    name: str
    queue: str  #: where its jobs are leased; "": not known yet
    since: float  #: wall; when its jobs became ready


# Indexes.

#: The job was inserted into the indexes, or removed from them. It is in the state that it was indexed by.
INDEXED: Final[Table[Callable[["EngineState", Job, Any], None]]] = {}
UNINDEXED: Final[Table[Callable[["EngineState", Job, Any], None]]] = {}

#: The job was removed. The last argument is the event.
REMOVED: Final[Table[Callable[["EngineState", Job, Any, "AnyEvent"], None]]] = {}

#: The batch that holds a job until it is the job's turn.
BATCH: Final[Table[Callable[["EngineState", Job], JobBatch | None]]] = {}

# Leases. The job was leased, or its lease was given back or extended until a time by the caller's clock.

LEASED: Final[Table[Callable[["EngineState", Job, "Leased"], None]]] = {}
RETURNED: Final[Table[Callable[["EngineState", Job, Lease], None]]] = {}
RENEWED: Final[Table[Callable[["EngineState", Job, float], None]]] = {}

#: The lease expired and the job's policy is `LeaseExpiry.LAZY`. Returns the event that ends it.
EXPIRED: Final[Table[Callable[["EngineState", Job, Lease, str, Now], "AnyEvent"]]] = {}

#: The job succeeded and is kept. The hook stores the result and indexes the job. The lease is the one that ended.
SUCCEEDED: Final[Table[Callable[["EngineState", "FollowUps", Job, "Succeeded", Lease | None], None]]] = {}

#: The job failed and is not removed. It is indexed afterwards. The hook counts the failure.
FAILED: Final[Table[Callable[["EngineState", Job, "Failed", Lease | None], None]]] = {}

# Waiting jobs.

#: The job becomes ready. The hook registers its queue and sets its sort key.
READIED: Final[Table[Callable[["EngineState", Job, Any, "Readied"], None]]] = {}

#: The dependencies of a blocked job are met, and it waits for its due time.
SCHEDULED: Final[Table[Callable[["EngineState", Job], None]]] = {}

#: An operator moved it to the dead jobs. It does not wait any more.
BURIED: Final[Table[Callable[["EngineState", Job], None]]] = {}

#: An operator moves it to another queue. It still has the name of the queue it was in.
REROUTED: Final[Table[Callable[["EngineState", Job, "Rerouted"], None]]] = {}

# Schedules, by the protocol data of the job they push.

#: The run after the one that is due at the given wall time.
NEXT_RUN: Final[Table[Callable[[Schedule, float], float]]] = {}

#: The job of a run.
RUN: Final[Table[Callable[["EngineState", Spec, UUID], Spec]]] = {}

#: The job of a run was refused. Returns what happens instead, given the events of the same tick.
RUN_REFUSED: Final[Table[Callable[["EngineState", Schedule, Spec, float, "list[Any]"], "AnyEvent | None"]]] = {}

# Hooks without a job.

#: A lock was freed.
LOCK_FREED: Final[list[Callable[["EngineState", "FollowUps", str, "Lock"], None]]] = []

#: Why a held job cannot be moved to another queue, as the end of a sentence. Empty: it can.
NOT_MOVABLE: Final[list[Callable[["EngineState", Job], str]]] = []


def require() -> None:
    """Raises UsageError if the tables were not filled."""
    if not INDEXED:
        raise UsageError("import crossdock.engine.engine first: it registers the hooks of the protocols")
