"""Events of records beside the job: groups, tracks, throttles, recurrences; and what callers keep: settings, watched
jobs, workers heard of, jobs at intervals."""

import msgspec

from crossdock.model.event import Event, Row
from crossdock.model.job import Call, Number, Spec
from crossdock.model.records import Interval, Per, Recurrence


class GroupOpened(Event, tag="group-opened"):
    name: str
    via: str
    parent: str
    description: str
    complete: Spec | None
    success: Spec | None
    end: float  #: steady


class GroupCommitted(Event, tag="group-committed"):
    name: str
    end: float


class GroupCalled(Event, tag="group-called"):
    """A callback of a group was pushed."""

    name: str
    via: str
    call: Call
    number: Number
    spec: Spec


class GroupFinished(Event, tag="group-finished"):
    """A group with its callbacks and children is all executed, or all succeeded; its parent may go on."""

    name: str
    call: Call
    end: float  #: steady; kept until then for those who ask


class Tracked(Event, tag="tracked"):
    """Somebody said how far a job is."""

    jid: str
    percent: int | None
    text: str | None


class TracksDated(Event, tag="tracks-dated"):
    """Tracks that the events before it changed, by a clock that does not jump: each is kept until `end`."""

    jids: list[str]
    end: float  #: steady


class ThrottlesSet(Event, tag="throttles-set"):
    """The throttles of the configuration, all of them."""

    throttles: list[tuple[str, int, Per, float]]


class RecurrencesSet(Event, tag="recurrences-set"):
    """The recurrences of the configuration, all of them, each with its next run."""

    recurrences: list[Recurrence]


class Spawned(Event, tag="spawned"):
    """A recurrence was due: its job was pushed as `number` (0: it was not, another holds its lock); `next` follows."""

    name: str
    via: str
    number: Number
    spec: Spec
    next: float


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
    rows: list[Row]  #: of those that became ready, or stand elsewhere among the ready
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
    instead: dict[int, Row] = msgspec.field(default_factory=dict)
    over: tuple[int, ...] = ()  #: or whose job is another door's: passed over
