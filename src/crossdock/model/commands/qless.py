"""Commands that qless needs: to put, move and edit jobs by name, and to change the records beside them.

Each carries its caller's time `t` (model.md section 2). Every deadline is stored twice, by that clock and by the
server's.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from crossdock.model.commands.core import Command, LeaseNext, Tick
from crossdock.model.job import Form, Job, Number
from crossdock.model.protocol_data import HistoryEntry, QlessDialect, Tag
from crossdock.model.records import Interval

T = TypeVar("T", covariant=True)


class CallerCommand(Command[T], Generic[T], frozen=True, gc=False):
    """A command of a caller that has its own clock."""

    via: str
    t: float

    def caller_time(self) -> float:
        return self.t


class Put(CallerCommand[None], frozen=True, gc=False):
    """Create a job, or move a known one to this queue from any state. None keeps the old value, or is the default."""

    worker: str | None  #: the worker that puts it; a holder with another name is notified
    jid: str
    queue: str
    kind: str
    payload: bytes
    form: Form
    delay: float = 0.0
    priority: int | float | None = None
    tags: tuple[Tag, ...] | None = None
    retries: int | float | None = None
    depends_on: Sequence[str] = ()  #: replaces the dependencies of the job, unless it is empty
    throttles: tuple[str, ...] = ()  #: the job is held while one of these is full
    keeps: bool = False  #: the job keeps its places in throttles (reqless)
    old: bool = False  #: put by an old dialect: see `QlessData.old`
    backoff: tuple[float, float] | None = None  #: see `QlessData.backoff`; None: unchanged
    #: the job is still found under its old tags, and keeps all its dependencies (the oldest dialect)
    sticky: bool = False


class Advance(CallerCommand[None], frozen=True, gc=False):
    """The holder completes this job here, and it continues in another queue as if it was put there."""

    number: Number
    payload: bytes
    queue: str
    delay: float = 0.0
    depends_on: Sequence[str] = ()
    qless: QlessDialect | None = None


class CatchUp(Command[list[Number]], frozen=True, gc=False):
    """Do what is lazily due in a queue: expired leases, intervals and delayed jobs, each up to `limit`. Outcome: the
    jobs whose leases ended and that may be leased again.
    """

    via: str
    queue: str
    t: float | None  #: None: by the server's clock
    limit: float
    leases: bool = True
    grace: float | None = None  #: None: as configured
    intervals: bool = True
    uncounted: bool = False  #: a job that is not tried again is not counted as a failure (an old dialect)
    #: Expired leases end at once, without a warning. The text is the error of a job that is not tried again (the oldest
    #: dialect).
    abrupt: str = ""
    due: bool = True
    only: Number = 0  #: only the lease of this job
    #: As in the PHP fork: the configured backoff applies, and a failure names the worker of the last lease.
    php: bool = False

    def caller_time(self) -> float | None:
        return self.t


class Pop(CallerCommand[list[Job]], frozen=True, gc=False):
    """Lease the next jobs of a queue, after what is lazily due. Outcome: the jobs with their leases."""

    queue: str
    worker: str
    count: float
    term: float  #: seconds that a lease lasts
    grace: float | None = None
    uncounted: bool = False
    abrupt: str = ""  #: as in `CatchUp`; waits are counted in whole seconds since the put
    unlimited: bool = False  #: ignore the limit that is configured for the queue; throttles still apply (reqless)
    php: bool = False  #: as in `CatchUp`

    @property
    def queues(self) -> tuple[str, ...]:
        return (self.queue,)


class LeaseNow(LeaseNext, frozen=True, gc=False):
    """The last step of a `LeaseNext`, after what was lazily due."""


class TickNow(Tick, frozen=True, gc=False):
    """The first step of a `Tick`: the timers. Afterwards, queues whose lazy deadlines have come are woken."""


class LeaseThese(CallerCommand[list[Job]], frozen=True, gc=False):
    """Lease these ready jobs, then the first `count` of the queue. A step of `Pop`."""

    queue: str
    worker: str
    numbers: Sequence[Number]
    count: int
    term: float
    whole: bool = False  #: the wait is counted in whole seconds since the put


class Renew(CallerCommand[None], frozen=True, gc=False):
    """Extend the lease of this job."""

    number: Number
    term: float
    payload: bytes | None = None
    unseen: bool = False  #: the worker does not count as seen (an old dialect)


class Unfail(CallerCommand[int], frozen=True, gc=False):
    """Make the oldest failed jobs of a group ready in this queue. Outcome: how many."""

    group: str
    queue: str
    count: int


class Revive(CallerCommand[int], frozen=True, gc=False):
    """Make those of these jobs that are failed or dead ready in this queue, as if they were new. Outcome: how many."""

    queue: str
    numbers: Sequence[Number]
    listed: bool = False  #: register the queue


class TakeBack(CallerCommand[None], frozen=True, gc=False):
    """End the leases of these jobs. They stand before all others then (qless timeout)."""

    numbers: Sequence[Number]
    rid: bool = False  #: the jobs do not name their last holder any more (reqless)


class Cancel(CallerCommand[None], frozen=True, gc=False):
    """Remove this job, in any state."""

    number: Number
    #: jobs that the same call removes: they do not fail because a dependency is gone
    along: frozenset[Number] = frozenset()
    uncounted: bool = False  #: a failed job stays counted as failed (the oldest dialect)

    def spares(self) -> frozenset[Number]:
        return self.along


class SetPriority(CallerCommand[None], frozen=True, gc=False):
    """A ready job stands before all others of its new priority."""

    number: Number
    priority: int | float


class EditTags(CallerCommand[None], frozen=True, gc=False):
    number: Number
    add: tuple[Tag, ...] = ()
    drop: tuple[Tag, ...] = ()
    twice: bool = False  #: a new tag that is named twice is stored twice (the oldest dialect)


class EditDependencies(CallerCommand[None], frozen=True, gc=False):
    """Set the dependencies of a blocked job. Without any it becomes ready."""

    number: Number
    depends_on: tuple[Number, ...]


class Note(CallerCommand[None], frozen=True, gc=False):
    number: Number
    entry: HistoryEntry


class Watch(Command[None], frozen=True, gc=False):
    jid: str
    t: float


class Unwatch(Command[None], frozen=True, gc=False):
    jid: str


class Configure(Command[None], frozen=True, gc=False):
    option: str
    value: str | None


class ForgetWorkers(Command[None], frozen=True, gc=False):
    workers: Sequence[str]
    with_jobs: bool = False


class SetInterval(Command[None], frozen=True, gc=False):
    """Create or change an interval."""

    interval: Interval
    t: float
    registers: bool = True


class ClearInterval(Command[None], frozen=True, gc=False):
    jid: str


class SetThrottle(Command[None], frozen=True, gc=False):
    """Set how many jobs that name the throttle may be leased at a time. None removes the limit."""

    name: str
    maximum: int | float | None
    lasts: float | None = None  #: seconds; None: for ever


class FreeHeld(Command[int], frozen=True, gc=False):
    """Free at most `limit` jobs that are still held by a throttle with room for very many. Outcome: how many."""

    limit: int


class FreeThrottle(Command[None], frozen=True, gc=False):
    """These jids neither hold the throttle nor wait for it any more."""

    name: str
    jids: Sequence[str]
    t: float

    def caller_time(self) -> float:
        return self.t
