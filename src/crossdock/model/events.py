"""Events: what the journal keeps, what `apply` folds, and what the lake shows a row for.

Each event about a job names all that its lake row needs, so neither lake nor stream needs the engine's state. They are
array-like msgpack: a new field goes at the end with a default, and an old journal always loads. A kind of event is
never renamed and its fields never change their meaning or order (tests/unit/test_events.py holds a journal of each
version and loads it).
"""

from typing import Final

import msgspec

from crossdock.model.event import ClosingEvent as ClosingEvent
from crossdock.model.event import Ended as Ended
from crossdock.model.event import Event as Event
from crossdock.model.event import JobEvent as JobEvent
from crossdock.model.event import Row as Row
from crossdock.model.event_moves import Advanced as Advanced
from crossdock.model.event_moves import Held as Held
from crossdock.model.event_moves import Moved as Moved
from crossdock.model.event_moves import NeedsEdited as NeedsEdited
from crossdock.model.event_moves import Noted as Noted
from crossdock.model.event_moves import Reprioritised as Reprioritised
from crossdock.model.event_moves import Rerouted as Rerouted
from crossdock.model.event_moves import Revived as Revived
from crossdock.model.event_moves import Stalled as Stalled
from crossdock.model.event_moves import Surfaced as Surfaced
from crossdock.model.event_moves import Tagged as Tagged
from crossdock.model.event_moves import Warned as Warned
from crossdock.model.event_records import Configured as Configured
from crossdock.model.event_records import IntervalCleared as IntervalCleared
from crossdock.model.event_records import IntervalSet as IntervalSet
from crossdock.model.event_records import Recurred as Recurred
from crossdock.model.event_records import ThrottleFreed as ThrottleFreed
from crossdock.model.event_records import ThrottleSet as ThrottleSet
from crossdock.model.event_records import Unheld as Unheld
from crossdock.model.event_records import Unwatched as Unwatched
from crossdock.model.event_records import Watched as Watched
from crossdock.model.event_records import WorkerSeen as WorkerSeen
from crossdock.model.event_records import WorkersForgotten as WorkersForgotten
from crossdock.model.event_resqu import Reserved as Reserved
from crossdock.model.event_resqu import ResquEvent as ResquEvent
from crossdock.model.event_resqu import Unreserved as Unreserved
from crossdock.model.job import Bound, Call, Failure, Number, Spec, Token
from crossdock.model.keys import KeyEvent
from crossdock.model.loads import JobsLoaded as JobsLoaded
from crossdock.model.loads import LoadClosed as LoadClosed
from crossdock.model.loads import LoadEvent
from crossdock.model.records import Per, Recurrence
from crossdock.model.states import State

#: Written into each batch and snapshot; a reader refuses a newer one.
EVENT_VERSION: Final = 1


class Pushed(Event, tag="pushed"):
    """New jobs, numbered from `number` on. One event however many."""

    number: Number
    via: str
    specs: list[Spec]
    wall: float = 0.0  #: the clock if it was behind `at`, set back; 0: it was not. What is due by it is ready
    ends: tuple[float, ...] = ()  #: steady, one a spec: gone then in whatever state, 0: never. Empty: none of them is
    t: float | None = None  #: its caller's time


class Leased(JobEvent, tag="leased"):
    token: Token
    began: float  #: steady
    end: float  #: steady
    wait_s: float  #: booked on (queue, day of t, else of at)
    bound: Bound
    t: float | None = None
    until: float | None = None  #: the end by its caller's clock
    late: float | None = None  #: steady; of a lease that ends lazily, `end` is infinite
    handed: bool = False  #: its job was just taken from another; the places in throttles that it has go along


class Succeeded(ClosingEvent, tag="succeeded"):
    then: State
    result: bytes = b""
    end: float = 0  #: steady; the time of a job that is kept begins to run with this. 0: it does not
    t: float | None = None
    payload: bytes | None = None  #: put in place of what it was
    under: str = ""  #: the queue on which it is booked, if another than the job's
    leased_via: str = ""


class Failed(ClosingEvent, tag="failed"):
    """A failure: reported, or (`lost`) found out when the lease ended."""

    lost: bool
    then: State
    due: float  #: wall; the next try, or when a dead job is purged
    failure: Failure
    result: bytes = b""
    to_queue: str = ""  #: the dead queue it went to, as if new
    counted: bool = True  #: as a failure; the last lapse of a Workq job is none
    end: float = 0  #: steady; the time of a job that is kept begins to run with this. 0: it does not
    t: float | None = None
    payload: bytes | None = None  #: put in place of what it was
    due_t: float | None = None  #: `due` by its caller's clock
    stamp: float | None = None  #: ready, it stands by this time; None: in its old place
    said: bool = True  #: the failure is told of the job; without, only that it was tried
    booked: str = ""  #: the queue on which it is booked, if another than the job's
    unbooked: bool = False  #: it is not
    quiet: bool = False  #: nobody is told
    leased_via: str = ""
    faced: bool = False  #: the job has qless' face: booked only if it is kept, and then as failed too
    shown: Failure | None = None  #: as the lake may have it, where that is less

    @property
    def body(self) -> bytes:
        """What is left of the job for whoever asks for its result."""
        return self.result or (b"" if self.lost else self.failure.message.encode())


class Lapsed(ClosingEvent, tag="lapsed"):
    """A lease ran out; the job is back in its old place, the attempt counted."""

    t: float | None = None
    counted: bool = False  #: as a failure
    retried: bool = False  #: and booked as a lease that ran out, of which nobody was warned
    handed: bool = False  #: somebody else leases it in the same step, with the places in throttles that it has
    leased_via: str = ""


class Returned(ClosingEvent, tag="returned"):
    """A lease that nobody saw: the job is back in its old place and the attempt does not count."""

    leased_via: str = ""


class Readied(Event, tag="readied"):
    """Jobs became ready: `due`; `requeued` by somebody; `met`, all that they needed has succeeded."""

    why: str
    via: str
    rows: list[Row]
    ends: tuple[float, ...] = ()  #: steady, one a row: its time begins to run, 0: it does not. Empty: none does
    t: float | None = None
    first: bool = False  #: those with qless' face stand before their like, whatever the time
    unsaid: bool = False  #: they are still called scheduled (the oldest dialect, on a pop)


class Scheduled(Event, tag="scheduled"):
    """Jobs that wait for their due time now: all that they needed has succeeded."""

    rows: list[Row]


class Buried(Event, tag="buried"):
    """Jobs moved to the dead set by hand."""

    via: str
    due: float  #: wall; when they are purged
    rows: list[Row]


class Removed(Event, tag="removed"):
    """Jobs are gone without success: `discarded`, `canceled`, `cleared`, `queue removed`, `purged`, `expired`, `ttl`;
    of the foreground `lapsed`, `restarted`. A lease goes with its job. `retired`: kept after success, and gone now."""

    why: str
    via: str
    rows: list[Row]
    t: float | None = None
    unbooked: bool = False  #: a failed one still counts as such (an old dialect)


class QueueSeen(Event, tag="queue-seen"):
    """A queue was named by a lease. Soft: it changes nothing that happens to a job."""

    queue: str


class QueuePaused(Event, tag="queue-paused"):
    queue: str


class QueueResumed(Event, tag="queue-resumed"):
    queue: str


class QueueForgotten(Event, tag="queue-forgotten"):
    queue: str
    unlisted: bool = False  #: out of the list only; its jobs and its pause stay


class Flushed(Event, tag="flushed"):
    """Everything but numbers is gone (MODEL section 11)."""

    via: str


class Started(Event, tag="started"):
    """The first event after each recovery. Connection-bound leases fall back with it."""

    epoch: int
    steady: float
    rows: list[Row] = msgspec.field(default_factory=list)  #: of those leases


class Expired(Event, tag="expired"):
    """Locks, groups, tracks and places in a throttle whose time is over."""

    locks: list[str]
    groups: list[str]
    tracks: list[str]
    steady: float = 0.0  #: locks that end later were taken anew by an event of the same tick
    #: queue and lease: it goes on, and counts for its throttle no longer
    holders: list[tuple[str, Token]] = msgspec.field(default_factory=list)


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


class Renewed(Event, tag="renewed"):
    """A lease was extended."""

    number: Number
    token: Token
    end: float  #: steady
    t: float | None = None
    until: float | None = None
    late: float | None = None
    payload: bytes | None = None


class ThrottlesSet(Event, tag="throttles-set"):
    """The throttles of the configuration, all of them."""

    throttles: list[tuple[str, int, Per, float]]


class RecurrencesSet(Event, tag="recurrences-set"):
    """The recurrences of the configuration, all of them, each with its next run."""

    recurrences: list[Recurrence]


class NumbersDrawn(Event, tag="numbers-drawn"):
    """Numbers up to this one are used up without jobs."""

    number: Number


class Spawned(Event, tag="spawned"):
    """A recurrence was due: its job was pushed as `number` (0: it was not, another holds its lock); `next` follows."""

    name: str
    via: str
    number: Number
    spec: Spec
    next: float


AnyEvent = (
    Pushed
    | Leased
    | Succeeded
    | Failed
    | Lapsed
    | Returned
    | Readied
    | Scheduled
    | Buried
    | Removed
    | QueueSeen
    | QueuePaused
    | QueueResumed
    | QueueForgotten
    | Flushed
    | Started
    | Expired
    | GroupOpened
    | GroupCommitted
    | GroupCalled
    | GroupFinished
    | Tracked
    | Renewed
    | ThrottlesSet
    | RecurrencesSet
    | Spawned
    | TracksDated
    | NumbersDrawn
    | KeyEvent
    | Moved
    | Advanced
    | Revived
    | Stalled
    | Warned
    | Reprioritised
    | Tagged
    | NeedsEdited
    | Noted
    | Configured
    | Watched
    | Unwatched
    | WorkerSeen
    | WorkersForgotten
    | IntervalSet
    | IntervalCleared
    | Recurred
    | Held
    | ThrottleSet
    | ThrottleFreed
    | Unheld
    | Surfaced
    | ResquEvent
    | LoadEvent
    | Rerouted
)

#: Soft events are written with the next batch; no reply waits for them.
SOFT: Final[frozenset[type[Event]]] = frozenset({QueueSeen, WorkerSeen, Reserved, Unreserved})


class Batch(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One turn of the server, one row of the journal."""

    version: int
    wall: float
    steady: float  #: so that steady time goes on over a restart
    events: list[AnyEvent]


encode_batch = msgspec.msgpack.Encoder().encode
decode_batch = msgspec.msgpack.Decoder(Batch).decode
