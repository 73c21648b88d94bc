"""Events of a job's life, through whatever door: it comes in, is leased, settled, put back, moved by time or hand."""

from crossdock.model.events.base import ClosingEvent, Event, JobEvent, JobRow
from crossdock.model.job import Failure, LeaseBinding, Number, Spec, Token
from crossdock.model.policies import Ending
from crossdock.model.states import State


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
    bound: LeaseBinding
    t: float | None = None
    until: float | None = None  #: the end by its caller's clock
    late: float | None = None  #: steady; of a lease that ends lazily, `end` is infinite
    handed: bool = False  #: its job was just taken from another; the places in throttles that it has go along


class DependentsPostponed(Event, tag="dependents-postponed"):
    """The job ends in the same batch, and very many jobs need it. Later batches resolve them."""

    number: Number
    ending: Ending
    t: float | None = None
    first: bool = False  #: those that become ready stand before their like


class DependentsResolved(Event, tag="dependents-resolved"):
    """These dependents of a job whose dependents were postponed do not wait for it any more. What became of them is in
    the events that follow in the same batch."""

    number: Number
    ending: Ending
    dependents: list[Number]


class Renewed(Event, tag="renewed"):
    """A lease was extended."""

    number: Number
    token: Token
    end: float  #: steady
    t: float | None = None
    until: float | None = None
    late: float | None = None
    payload: bytes | None = None


class Succeeded(ClosingEvent, tag="succeeded"):
    then: State
    result: bytes = b""
    end: float = 0  #: steady; the time of a job that is kept begins to run with this. 0: it does not
    t: float | None = None
    payload: bytes | None = None  #: put in place of what it was
    under: str = ""  #: the queue on which it is booked, if another than the job's
    leased_via: str = ""
    steady: float = 0.0  #: then, of a job that is kept; 0: an older journal


class Failed(ClosingEvent, tag="failed"):
    """A failure: reported, or (`lost`) found out when the lease ended."""

    lost: bool
    then: State
    due: float  #: wall; the next try, or when a dead job is purged, as far as is known
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
    due_steady: float = 0.0  #: `due` on the steady clock, which decides; 0: an older journal

    @property
    def body(self) -> bytes:
        """What is left of the job for whoever asks for its result."""
        return self.result or (b"" if self.lost else self.failure.message.encode())


class LeaseExpired(ClosingEvent, tag="lapsed"):
    """A lease ran out; the job is back in its old place, the attempt counted."""

    t: float | None = None
    counted: bool = False  #: as a failure
    retried: bool = False  #: and booked as a lease that ran out, of which nobody was warned
    handed: bool = False  #: somebody else leases it in the same step, with the places in throttles that it has
    leased_via: str = ""


class Returned(ClosingEvent, tag="returned"):
    """A lease that nobody saw: the job is back in its old place and the attempt does not count."""

    leased_via: str = ""
    steady: float = 0.0  #: then: locks that are over are not taken again (0: an older journal, nobody knows)


class Readied(Event, tag="readied"):
    """Jobs became ready: `due`; `requeued` by somebody; `met`, all that they needed has succeeded."""

    why: str
    via: str
    rows: list[JobRow]
    ends: tuple[float, ...] = ()  #: steady, one a row: its time begins to run, 0: it does not. Empty: none does
    t: float | None = None
    first: bool = False  #: those with qless' face stand before their like, whatever the time
    unsaid: bool = False  #: they are still called scheduled (the oldest dialect, on a pop)


class Scheduled(Event, tag="scheduled"):
    """Jobs that wait for their due time now: all that they needed has succeeded."""

    rows: list[JobRow]


class Buried(Event, tag="buried"):
    """Jobs moved to the dead set by hand."""

    via: str
    due: float  #: wall; when they are purged, as far as is known
    rows: list[JobRow]
    freed: bool = False  #: others may have their places in throttles
    due_steady: float = 0.0  #: `due` on the steady clock, which decides; 0: an older journal


class Removed(Event, tag="removed"):
    """Jobs are gone without success: `discarded`, `canceled`, `cleared`, `queue removed`, `purged`, `expired`, `ttl`;
    of the foreground `lapsed`, `restarted`. A lease goes with its job. `retired`: kept after success, and gone now."""

    why: str
    via: str
    rows: list[JobRow]
    t: float | None = None
    unbooked: bool = False  #: a failed one still counts as such (an old dialect)


class Rerouted(Event, tag="rerouted"):
    """Waiting jobs were taken to that queue by hand, as they are. The rows say where they were."""

    via: str
    queue: str
    rows: list[JobRow]
    freed: bool = False  #: they were held, by a throttle or in a batch, and are ready there
