"""Commands that move and edit jobs by name, and those of the records beside them, as qless wants them.

Each carries its caller's `t` (MODEL section 2). Every deadline is kept twice: by that clock and by the server's.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from crossdock.model.commands.core import Command, LeaseNext, Tick
from crossdock.model.job import Form, Job, Number
from crossdock.model.protocol_data import HistoryEntry, Tag
from crossdock.model.records import Interval

T = TypeVar("T", covariant=True)


class CallerCommand(Command[T], Generic[T], frozen=True, gc=False):
    """A command of a caller that has a clock of its own."""

    via: str
    t: float

    def caller_time(self) -> float:
        return self.t


class Put(CallerCommand[None], frozen=True, gc=False):
    """A new job, or one that is known moved to this queue, from whatever state. None: as it was, or the default."""

    worker: str | None  #: who puts it; a holder of another name is told
    jid: str
    queue: str
    kind: str
    payload: bytes
    form: Form
    delay: float = 0.0
    priority: int | float | None = None
    tags: tuple[Tag, ...] | None = None
    retries: int | float | None = None
    depends_on: Sequence[str] = ()  #: in place of those it has, unless there are none
    throttles: tuple[str, ...] = ()  #: it is held while one of them is full
    keeps: bool = False  #: its places in throttles stay taken (reqless)
    old: bool = False  #: by an old dialect: see `QlessFace.old`
    backoff: tuple[float, float] | None = None  #: see `QlessFace.backoff`; None: as it was
    sticky: bool = False  #: it is still found under the tags it had, and keeps all its needs (the oldest)


class Advance(CallerCommand[None], frozen=True, gc=False):
    """Its holder is done with this job here; it goes on in another queue, as if put there."""

    number: Number
    payload: bytes
    queue: str
    delay: float = 0.0
    depends_on: Sequence[str] = ()
    whole: bool = False  #: the run is counted in whole seconds
    under: str = ""  #: the queue on which it is booked, if another than the job's (old dialects)


class CatchUp(Command[list[Number]], frozen=True, gc=False):
    """Carry out what is lazily due in a queue, each kind up to `limit`: leases that ran out, intervals, schedules.
    Outcome: the jobs whose leases were ended and that may be leased."""

    via: str
    queue: str
    t: float | None  #: None: by the server's clock
    limit: float
    leases: bool = True
    grace: float | None = None  #: None: as configured
    intervals: bool = True
    unbooked: bool = False  #: a job whose tries are over is not counted as a failure (an old dialect)
    #: No warning, what ran out is taken at once; this is told of a job whose tries are over (the oldest dialect)
    abrupt: str = ""
    due: bool = True
    only: Number = 0  #: no lease but that of this job
    #: As the PHP fork does: the configured backoff counts, and a failure names the worker whose lease was the last
    php: bool = False

    def caller_time(self) -> float | None:
        return self.t


class Pop(CallerCommand[list[Job]], frozen=True, gc=False):
    """Lease the next jobs of a queue, after what is due lazily. Outcome: the jobs, their leases on them."""

    queue: str
    worker: str
    count: float
    term: float  #: how long a lease lasts
    grace: float | None = None
    unbooked: bool = False
    abrupt: str = ""  #: as in `CatchUp`; waits are counted in whole seconds, from the put on
    unlimited: bool = False  #: whatever limit is configured for the queue; throttles count all the same (reqless)
    php: bool = False  #: as in `CatchUp`


class LeaseNow(LeaseNext, frozen=True, gc=False):
    """The last step of a `LeaseNext`: what was due lazily has been carried out."""


class TickNow(Tick, frozen=True, gc=False):
    """The first step of a `Tick`: the timers. Queues whose lazy deadlines have come are woken afterwards."""


class LeaseThese(CallerCommand[list[Job]], frozen=True, gc=False):
    """These ready jobs, then the first of the queue, so many. A part of `Pop`."""

    queue: str
    worker: str
    numbers: Sequence[Number]
    count: int
    term: float
    whole: bool = False  #: the wait is counted in whole seconds, from the put on


class Renew(CallerCommand[None], frozen=True, gc=False):
    """The holder of this job goes on with it."""

    number: Number
    term: float
    payload: bytes | None = None
    unseen: bool = False  #: it does not count as being heard of (an old dialect)


class Unfail(CallerCommand[int], frozen=True, gc=False):
    """Make the oldest jobs of a group ready in that queue. Outcome: how many."""

    group: str
    queue: str
    count: int


class Revive(CallerCommand[int], frozen=True, gc=False):
    """Make these jobs ready in that queue, those that are failed or dead, as if they were new. Outcome: how many."""

    queue: str
    numbers: Sequence[Number]
    listed: bool = False  #: the queue becomes known, if it is not


class TakeBack(CallerCommand[None], frozen=True, gc=False):
    """End the leases of these jobs, whoever holds them; they stand before all others then (qless' timeout)."""

    numbers: Sequence[Number]
    rid: bool = False  #: and name their holders no longer (reqless)


class Cancel(CallerCommand[None], frozen=True, gc=False):
    """Remove this job, in whatever state."""

    number: Number
    along: frozenset[Number] = frozenset()  #: removed by the same call: those who need it do not fail for it
    unbooked: bool = False  #: a failed one still counts as such (the oldest dialect)

    def spares(self) -> frozenset[Number]:
        return self.along


class SetPriority(CallerCommand[None], frozen=True, gc=False):
    """A ready one stands before all others of its new priority."""

    number: Number
    priority: int | float


class EditTags(CallerCommand[None], frozen=True, gc=False):
    number: Number
    add: tuple[Tag, ...] = ()
    drop: tuple[Tag, ...] = ()
    twice: bool = False  #: a new one that is named twice is there twice (the oldest dialect)


class EditDependencies(CallerCommand[None], frozen=True, gc=False):
    """Of a blocked job; without any left it is ready."""

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
    """Made or changed; its queue becomes known if that is asked for."""

    interval: Interval
    t: float
    registers: bool = True


class ClearInterval(Command[None], frozen=True, gc=False):
    jid: str


class SetThrottle(Command[None], frozen=True, gc=False):
    """How many jobs that name it may be leased at a time. None: any number, as if it had never been set."""

    name: str
    maximum: int | float | None
    lasts: float | None = None  #: seconds; None: for ever


class FreeHeld(Command[int], frozen=True, gc=False):
    """A throttle had room for very many, and some of them are still held: free at most `limit`. Outcome: how many."""

    limit: int


class FreeThrottle(Command[None], frozen=True, gc=False):
    """These jids hold it no longer, and do not wait for it, whatever they are."""

    name: str
    jids: Sequence[str]
    t: float

    def caller_time(self) -> float:
        return self.t
