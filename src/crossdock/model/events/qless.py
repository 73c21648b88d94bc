"""Events of jobs that are moved, edited, warned, or taken from their holder (the verbs `move` and `edit`).

`t` is the time by the clock of the caller that made the change; `at` is the server's, as in every event.
"""

import msgspec

from crossdock.model.events.base import ClosingEvent, EndedLease, Event, JobEvent, JobRow
from crossdock.model.job import Number, SortKey, Spec, Token
from crossdock.model.protocol_data import HistoryEntry, Tag
from crossdock.model.records import Interval


class Moved(JobEvent, tag="moved"):
    """A live or kept job was put anew, from whatever state; it goes on under its number. The head says what it was,
    `to` what it is; `worker` is whom it named as its holder until then."""

    ended: EndedLease | None
    t: float
    to: Spec
    lost: bool  #: the worker was another one, and is told
    keeps: bool = False  #: its places in throttles stay taken
    failed_at: float | None = None  #: as in `JobRow`; taken off that day's count, on the queue it goes to
    over: bool = False  #: as in `JobRow`


class Advanced(ClosingEvent, tag="advanced"):
    """A worker is done with a job and sent it on to another queue: no success, nobody's need is met."""

    t: float
    to_queue: str
    payload: bytes
    due: float  #: wall; 0: it need not wait
    due_t: float | None  #: the same by its caller's clock
    depends_on: tuple[Number, ...]
    under: str = ""  #: the queue on which it is booked, if another than the job's
    leased_via: str = ""  #: the door the lease went out by, if another than `via`; so in all that end one


class Revived(Event, tag="revived"):
    """Failed jobs were made ready again, in that queue."""

    via: str
    t: float
    queue: str
    rows: list[JobRow]
    listed: bool = False  #: the queue becomes known with it
    #: Entries of the list of failed jobs that are taken out of it: group, order and number. Their jobs were not failed.
    unlisted: tuple[tuple[str, int, Number], ...] = ()


class Stalled(ClosingEvent, tag="stalled"):
    """A job was taken from its holder and stands before all others. Nothing is counted."""

    t: float
    rid: bool = False  #: it names its holder no longer
    leased_via: str = ""


class Surfaced(JobEvent, tag="surfaced"):
    """A script had left this job in a queue's lists while it stood elsewhere: it is ready there now, to be popped."""

    t: float
    to_queue: str
    sort_key: SortKey
    counted: bool  #: as a failure: its lock was over
    ended: EndedLease | None = None  #: the lease it had where it stood


class Held(JobEvent, tag="held"):
    """A ready job waits for a place in a throttle that was full when it was about to be leased, or was put."""

    t: float
    throttle: str


class Warned(JobEvent, tag="warned"):
    """The lease of `worker` ran out. It has until then to be heard of; the next time the job is taken away."""

    token: Token
    t: float
    until: float  #: by callers' clocks
    late: float  #: steady


class Reprioritised(JobEvent, tag="reprioritised"):
    """The head has the priority it had before."""

    t: float
    to: int | float


class Tagged(JobEvent, tag="tagged"):
    t: float
    tags: tuple[Tag, ...]  #: all it has now
    gained: tuple[Tag, ...]  #: as named, each a use, whether it had it or not
    lost: tuple[Tag, ...]


class DependenciesEdited(JobEvent, tag="needs-edited"):
    """A blocked job waits for these now; for none: it is ready, whatever time it was put off to."""

    t: float
    depends_on: tuple[Number, ...]


class Noted(JobEvent, tag="noted"):
    """Somebody wrote into the job's history."""

    t: float
    entry: HistoryEntry
    shown: str | None = None  #: the text as the lake may have it, where that is less


class Configured(Event, tag="configured"):
    option: str
    value: str | None  #: None: as it is by default


class Watched(Event, tag="watched"):
    """Somebody follows that jid: what happens to it is published."""

    jid: str
    t: float


class Unwatched(Event, tag="unwatched"):
    jid: str


class WorkerSeen(Event, tag="worker-seen"):
    """Soft: it changes nothing that happens to a job."""

    worker: str
    t: float


class WorkersForgotten(Event, tag="workers-forgotten"):
    workers: list[str]
    with_jobs: bool  #: what they were given is forgotten, too


class IntervalSet(Event, tag="interval-set"):
    """A job at intervals was made or changed: the whole of it, as it is now."""

    interval: Interval
    t: float
    registers: bool = True  #: its queue


class IntervalCleared(Event, tag="interval-cleared"):
    jid: str


class ThrottleSet(Event, tag="throttle-set"):
    """By a caller."""

    name: str
    maximum: int | float
    end: float | None  #: steady, infinite: never; None: it was taken back


class ThrottleFreed(Event, tag="throttle-freed"):
    """By hand: these jids hold it no longer, and do not wait for it."""

    name: str
    jids: list[str]


class Unheld(Event, tag="unheld"):
    """A throttle has room: those who waited longest are ready, and wait for it no longer."""

    name: str
    t: float
    jids: list[str]  #: of all who waited no longer, jobs or not
    rows: list[JobRow]  #: of those that became ready, or stand elsewhere among the ready
    owed: int = 0  #: there is room for so many more, who follow in later batches


class Recurred(Event, tag="recurred"):
    """Slots of an interval came: a job for each, numbered from `number` on."""

    jid: str  #: the interval's
    via: str
    t: float
    number: Number
    specs: list[Spec]
    count: int  #: jobs it has made so far
    next: float  #: by callers' clocks
    next_at: float  #: wall
    fresh: bool = False  #: one of that name begins a new history
    #: Of those specs whose name a job had already, by their place: what it was, since it became this one
    instead: dict[int, JobRow] = msgspec.field(default_factory=dict)
    over: tuple[int, ...] = ()  #: or whose job is another door's: passed over
