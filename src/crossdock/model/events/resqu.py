"""Events of unique ids, deferred jobs, plans, batches and buffers (Resqu's words, MODEL sections 7 and 10)."""

from enum import IntEnum

from crossdock.model.events.base import ClosingEvent, Event, JobEvent, JobRow
from crossdock.model.job import Number, Spec, Token
from crossdock.model.records import Schedule

#: source (or `default`) → name (or `default`) → pool
Pools = dict[str, dict[str, str]]


class Said(IntEnum):
    """What was said of the job in a buffer before the buffer was emptied."""

    NOTHING = 0
    OVER = 1  #: it failed, or its next try is about to be pushed
    AGAIN = 2  #: its next run is about to be pushed


class Reserved(Event, tag="reserved"):
    """A connection has a lock until it pushes the job that is to hold it, or ends. Soft: it ends with a restart."""

    name: str
    by: int


class Unreserved(Event, tag="unreserved"):
    """The connection ended first. Soft, as the reservation was."""

    names: list[str]


class Handed(Event, tag="handed"):
    """A lock went over from a job that succeeded to a connection, with the deferred job: it will push that one."""

    name: str
    by: int


class UniqueMarked(Event, tag="unique-marked"):
    """Somebody said that the holder of a lock is running, or is not."""

    name: str
    running: bool


class Deferred(Event, tag="deferred"):
    """A job waits for the holder of its lock to be done. It has no number yet."""

    name: str
    via: str
    spec: Spec


class DeferralDropped(Event, tag="deferral-dropped"):
    """Pushed by the connection that it was handed to, or deleted."""

    name: str


class Unlocked(Event, tag="unlocked"):
    """A lock was taken from its holder by hand. The job goes on without."""

    name: str


class Rescheduled(ClosingEvent, tag="rescheduled"):
    """A worker is done with the job and it comes again: under its number, as `to` says. The head has what it was."""

    failed: bool
    to: Spec
    failures: int  #: it has now
    message: str = ""
    leased_via: str = ""  #: as in `Succeeded`


class Taken(JobEvent, tag="taken"):
    """A ready job was taken out of its queue, to be put on another one. No lease: nothing is counted."""


class PutOnQueue(Event, tag="put-on-queue"):
    """Jobs that were taken, or waited unassigned, joined the tail of that queue."""

    via: str
    queue: str
    rows: list[JobRow]


class BufferFilled(Event, tag="buffer-filled"):
    key: str
    number: Number
    token: Token
    text: bytes


class BufferSaid(Event, tag="buffer-said"):
    key: str
    said: Said
    by: int


class BufferEmptied(Event, tag="buffer-emptied"):
    key: str


class ResquBatchOpened(Event, tag="stage-opened"):
    """A batch, of which nobody sees anything until it is committed."""

    name: str
    via: str
    source: str
    job_name: str
    end: float  #: steady


class ResquBatchPushed(Event, tag="stage-pushed"):
    """A job of it, held until the batch is worked on."""

    name: str
    via: str
    number: Number
    spec: Spec


class ResquBatchKept(Event, tag="stage-kept"):
    name: str
    end: float


class ResquBatchCommitted(Event, tag="stage-committed"):
    """One event, however many jobs: they stay in its own list."""

    name: str
    queue: str  #: whose lane it is, or in whose backlog it waits; empty: an allocator will say
    jobs: int


class ResquBatchAssigned(Event, tag="stage-assigned"):
    name: str
    queue: str


class ResquBatchFinished(Event, tag="stage-finished"):
    """An allocator's batch was worked off; the next one of its source waits for a pool again."""

    name: str
    next: str


class ResquBatchEnded(Event, tag="stage-ended"):
    """It was abandoned. Its jobs are removed before, in slices."""

    name: str


class PlanSet(Event, tag="plan-set"):
    """Made or changed: the whole of it, as it is now."""

    plan: Schedule


class PlanCleared(Event, tag="plan-cleared"):
    name: str


class MappingSet(Event, tag="mapping-set"):
    """The pools of the configuration."""

    static: Pools
    batch: Pools


ResquEvent = (
    Reserved
    | Unreserved
    | Handed
    | UniqueMarked
    | Deferred
    | DeferralDropped
    | Unlocked
    | Rescheduled
    | Taken
    | PutOnQueue
    | BufferFilled
    | BufferSaid
    | BufferEmptied
    | ResquBatchOpened
    | ResquBatchPushed
    | ResquBatchKept
    | ResquBatchCommitted
    | ResquBatchAssigned
    | ResquBatchFinished
    | ResquBatchEnded
    | PlanSet
    | PlanCleared
    | MappingSet
)
