"""Events of qless: jobs that are moved, edited, warned or taken from their holder, and qless records.

`t` is the time on the clock of the caller that made the change. `at` is the server's time, as in every event.
"""

import msgspec

from crossdock.model.events.base import ClosingEvent, EndedLease, Event, JobEvent, JobRow
from crossdock.model.job import Number, SortKey, Spec, Token
from crossdock.model.protocol_data import HistoryEntry, Tag
from crossdock.model.records import Interval


class Moved(JobEvent, tag="moved"):
    """A known job was put again, from any state, and keeps its number. The fields of the base class describe the job
    before, `to` after. `worker` is the holder that it named before.
    """

    ended: EndedLease | None
    t: float
    to: Spec
    lost: bool  #: the holder was another worker, and is notified
    keeps: bool = False  #: the job keeps its places in throttles
    failed_at: float | None = None  #: as in `JobRow`; taken off the count of that day, for the queue it goes to
    over: bool = False  #: as in `JobRow`
    pushed_at: float | None = None  #: as in `ClosingEvent`, before this put


class Advanced(ClosingEvent, tag="advanced"):
    """A worker completed a job here and sent it to another queue. It is not a success, and dependents keep waiting."""

    t: float
    to_queue: str
    payload: bytes
    due: float  #: wall; 0: no delay
    due_t: float | None  #: the same by the caller's clock
    depends_on: tuple[Number, ...]
    booked_queue: str = ""  #: as in `QlessDialect`
    #: the protocol the job was leased through, if it is not `via`; the same in all events that end a lease
    leased_via: str = ""
    pushed_at: float | None = None


class Revived(Event, tag="revived"):
    """Failed jobs were made ready again in this queue."""

    via: str
    t: float
    queue: str
    rows: list[JobRow]
    listed: bool = False  #: the queue is registered
    #: Entries removed from the list of failed jobs: group, order and number. Their jobs were not failed.
    unlisted: tuple[tuple[str, int, Number], ...] = ()


class Stalled(ClosingEvent, tag="stalled"):
    """A job was taken from its holder and stands before all others. Nothing is counted."""

    t: float
    rid: bool = False  #: it does not name its last holder any more
    leased_via: str = ""
    pushed_at: float | None = None


class Surfaced(JobEvent, tag="surfaced"):
    """A script had left this job in the lists of a queue while it was elsewhere. It is ready in that queue now, to be
    popped.
    """

    t: float
    to_queue: str
    sort_key: SortKey
    counted: bool  #: as a failure: its lock had expired
    ended: EndedLease | None = None  #: the lease it had elsewhere
    pushed_at: float | None = None  #: as in `ClosingEvent`


class Held(JobEvent, tag="held"):
    """A ready job waits for a place in a throttle that was full when the job was to be leased, or was put."""

    t: float
    throttle: str


class Warned(JobEvent, tag="warned"):
    """The lease of `worker` expired. The job is taken away unless the worker reports until then."""

    token: Token
    t: float
    until: float  #: by callers' clocks
    late: float  #: steady


class Reprioritised(JobEvent, tag="reprioritised"):
    """The field `priority` has the value before."""

    t: float
    to: int | float


class Tagged(JobEvent, tag="tagged"):
    t: float
    tags: tuple[Tag, ...]  #: all tags it has now
    gained: tuple[Tag, ...]  #: as named: each counts as a use, even if the job had it
    lost: tuple[Tag, ...]


class DependenciesEdited(JobEvent, tag="dependencies-edited"):
    """A blocked job waits for these jobs now. Without any it is ready, even if it was delayed."""

    t: float
    depends_on: tuple[Number, ...]


class Noted(JobEvent, tag="noted"):
    """A client added an entry to the job's history."""

    t: float
    entry: HistoryEntry
    shown: str | None = None  #: the text as the lake may show it, if secrets were redacted


class Configured(Event, tag="configured"):
    option: str
    value: str | None  #: None: the default


class Watched(Event, tag="watched"):
    """A client tracks this jid: its changes are published."""

    jid: str
    t: float


class Unwatched(Event, tag="unwatched"):
    jid: str


class WorkerSeen(Event, tag="worker-seen"):
    """Soft: it changes no job."""

    worker: str
    t: float


class WorkersForgotten(Event, tag="workers-forgotten"):
    workers: list[str]
    with_jobs: bool  #: the leases listed for them are forgotten, too


class IntervalSet(Event, tag="interval-set"):
    """An interval was created or changed: the complete record."""

    interval: Interval
    t: float
    registers: bool = True  #: its queue


class IntervalCleared(Event, tag="interval-cleared"):
    jid: str


class ThrottleSet(Event, tag="throttle-set"):
    """A caller set or removed a throttle."""

    name: str
    maximum: int | float
    end: float | None  #: steady, infinity: never; None: it was removed


class ThrottleFreed(Event, tag="throttle-freed"):
    """A caller freed the throttle: these jids neither hold it nor wait for it any more."""

    name: str
    jids: list[str]


class Unheld(Event, tag="unheld"):
    """A throttle has room: the jobs that waited longest are ready."""

    name: str
    t: float
    jids: list[str]  #: all that stopped waiting, whether a job has the jid or not
    rows: list[JobRow]  #: jobs that became ready, or changed their sort key
    owed: int = 0  #: how many more have room, and follow in later journal entries


class Recurred(Event, tag="recurred"):
    """Runs of an interval were due: a job for each, numbered from `number` on."""

    jid: str  #: of the interval
    via: str
    t: float
    number: Number
    specs: list[Spec]
    count: int  #: jobs it has created so far
    next: float  #: by callers' clocks
    next_at: float  #: wall
    fresh: bool = False  #: a job of that name starts a new history
    #: By index of the spec: the earlier job of that jid, which became this one.
    instead: dict[int, JobRow] = msgspec.field(default_factory=dict)
    over: tuple[int, ...] = ()  #: indexes of specs that were left out because a job of another protocol has the jid
