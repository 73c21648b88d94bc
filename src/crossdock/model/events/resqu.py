"""Events of Resqu: unique ids, deferred jobs, plans, batches and buffers (model.md sections 7 and 10)."""

from enum import IntEnum

from crossdock.model.events.base import ClosingEvent, Event, JobEvent, JobRow
from crossdock.model.job import Number, Spec, Token
from crossdock.model.records import Schedule

#: source (or `default`) → name (or `default`) → pool
Pools = dict[str, dict[str, str]]


class Said(IntEnum):
    """What a worker reported about the job in its buffer before it emptied the buffer."""

    NOTHING = 0
    OVER = 1  #: the job failed, or its next try is about to be pushed
    AGAIN = 2  #: the next run of the job is about to be pushed


class Reserved(Event, tag="reserved"):
    """A connection holds a lock until it pushes the job that will hold it, or closes. Soft: a restart ends it."""

    name: str
    by: int


class Unreserved(Event, tag="unreserved"):
    """The connection closed first. Soft, like the reservation."""

    names: list[str]


class Handed(Event, tag="handed"):
    """A lock passed from a job that succeeded to a connection, together with the deferred job, which that connection
    will push.
    """

    name: str
    by: int


class UniqueMarked(Event, tag="unique-marked"):
    """A worker reported that the holder of a lock is running, or is not."""

    name: str
    running: bool


class Deferred(Event, tag="deferred"):
    """A job waits until the holder of its lock is done. It has no number yet."""

    name: str
    via: str
    spec: Spec


class DeferralDropped(Event, tag="deferral-dropped"):
    """The deferred job was pushed by the connection that received it, or was deleted."""

    name: str


class Unlocked(Event, tag="unlocked"):
    """A lock was taken from its holder. The job continues without it."""

    name: str


class Rescheduled(ClosingEvent, tag="rescheduled"):
    """A worker is done with the job, and it runs again with its number and the values of `to`. The other fields
    describe it before.
    """

    failed: bool
    to: Spec
    failures: int  #: its failures after this
    message: str = ""
    leased_via: str = ""  #: as in `Succeeded`
    pushed_at: float | None = None  #: before this event


class Taken(JobEvent, tag="taken"):
    """A ready job was taken out of its queue, to be put into another one. It is not a lease, and nothing is counted."""


class PutOnQueue(Event, tag="put-on-queue"):
    """Jobs that were taken, or waited unassigned, joined the tail of this queue."""

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


class ResquBatchOpened(Event, tag="resqu-batch-opened"):
    """A batch that is invisible until it is committed."""

    name: str
    via: str
    source: str
    job_name: str
    end: float  #: steady


class ResquBatchPushed(Event, tag="resqu-batch-pushed"):
    """A job of the batch, held until the batch is active."""

    name: str
    via: str
    number: Number
    spec: Spec


class ResquBatchKept(Event, tag="resqu-batch-kept"):
    name: str
    end: float


class ResquBatchCommitted(Event, tag="resqu-batch-committed"):
    """One event for any number of jobs: they stay in the list of the batch."""

    name: str
    queue: str  #: the pool in which it is active or in the backlog; empty: an allocator assigns it
    jobs: int


class ResquBatchAssigned(Event, tag="resqu-batch-assigned"):
    name: str
    queue: str


class ResquBatchFinished(Event, tag="resqu-batch-finished"):
    """An allocator reported its batch as finished. The next batch of its source waits to be assigned again."""

    name: str
    next: str


class ResquBatchEnded(Event, tag="resqu-batch-ended"):
    """It was abandoned. Its jobs were removed before, in slices."""

    name: str


class PlanSet(Event, tag="plan-set"):
    """A plan was created or changed."""

    plan: Schedule


class PlanCleared(Event, tag="plan-cleared"):
    name: str


class MappingSet(Event, tag="mapping-set"):
    """The configured pools."""

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
