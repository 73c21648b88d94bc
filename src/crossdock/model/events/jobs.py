"""Events of a job's life in every protocol: pushed, leased, settled, made ready, moved and removed."""

from crossdock.model.events.base import ClosingEvent, Event, JobEvent, JobRow
from crossdock.model.job import Failure, LeaseBinding, Number, Spec, Token
from crossdock.model.policies import Ending
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.states import State


class Pushed(Event, tag="pushed"):
    """New jobs, numbered from `number` on. One event for any number of jobs."""

    number: Number
    via: str
    specs: list[Spec]
    #: the wall clock, if it was set back behind `at`; 0: it was not. Jobs that are due by it are ready
    wall: float = 0.0
    #: steady, one per spec: the job is removed then in any state, 0: never. Empty: none is
    ends: tuple[float, ...] = ()
    t: float | None = None  #: the caller's time
    once: float | None = None  #: steady; set if these jobs were pushed with `once`: their jids are remembered


class Leased(JobEvent, tag="leased"):
    token: Token
    began: float  #: steady
    end: float  #: steady
    wait_s: float  #: counted under (queue, day of t, else of at)
    bound: LeaseBinding
    t: float | None = None
    until: float | None = None  #: the end by the caller's clock
    late: float | None = None  #: steady; set for a lease that ends lazily, whose `end` is infinite
    handed: bool = False  #: the job was taken from another holder in the same change, and keeps its places in throttles


class DependentsPostponed(Event, tag="dependents-postponed"):
    """The job ends in the same journal entry and has very many dependents. Later entries resolve them."""

    number: Number
    ending: Ending
    t: float | None = None
    first: bool = False  #: dependents that become ready stand before others of their priority


class DependentsResolved(Event, tag="dependents-resolved"):
    """These postponed dependents do not wait for the job any more. The events that follow in the same journal entry
    change them.
    """

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
    end: float = 0  #: steady; a kept job is removed then. 0: its end is already set, or it has none
    t: float | None = None
    payload: bytes | None = None  #: replaces the payload
    qless: QlessDialect | None = None
    leased_via: str = ""
    steady: float = 0  #: the time of the event, for a job that is kept
    pushed_at: float | None = None


class Failed(ClosingEvent, tag="failed"):
    """A failure: reported by a worker, or `lost` when the lease expired."""

    lost: bool
    then: State
    due: float  #: wall; the next try, or the expected purge of a dead job
    failure: Failure
    result: bytes = b""
    to_queue: str = ""  #: the dead queue it went to, as if new
    counted: bool = True  #: as a failure; the last lease expiry of a Workq job is not
    end: float = 0  #: steady; a kept job is removed then. 0: its end is already set, or it has none
    t: float | None = None
    payload: bytes | None = None  #: replaces the payload
    due_t: float | None = None  #: `due` by the caller's clock
    stamp: float | None = None  #: the time in the sort key of a job that is ready again; None: its old sort key
    qless: QlessDialect | None = None
    leased_via: str = ""
    books_kept: bool = False  #: `ProtocolData.books_kept_failures` of the job
    shown: Failure | None = None  #: the failure as the lake may show it, if secrets were redacted
    due_steady: float = 0.0  #: `due` on the steady clock, which decides
    pushed_at: float | None = None

    @property
    def body(self) -> bytes:
        """The result that is kept with the job."""
        return self.result or (b"" if self.lost else self.failure.message.encode())


class LeaseExpired(ClosingEvent, tag="lease-expired"):
    """A lease expired. The job is ready again at its old sort key, and the attempt counts."""

    t: float | None = None
    counted: bool = False  #: as a failure
    retried: bool = False  #: and as a lease expiry without a warning
    handed: bool = False  #: another worker leases the job in the same change, and it keeps its places in throttles
    leased_via: str = ""
    pushed_at: float | None = None


class Returned(ClosingEvent, tag="returned"):
    """A lease was given back by a holder that never received it. The job is ready at its old sort key, and the attempt
    does not count.
    """

    leased_via: str = ""
    steady: float = 0.0  #: the time of the event: locks that have ended are not taken again
    pushed_at: float | None = None


class Readied(Event, tag="readied"):
    """Jobs became ready: `due`, `requeued` by an operator or client, or `met`: all dependencies succeeded."""

    why: str
    via: str
    rows: list[JobRow]
    #: steady, one per row: its time to live runs until then, 0: it has none. Empty: none has one
    ends: tuple[float, ...] = ()
    t: float | None = None
    first: bool = False  #: qless jobs stand before others of their priority
    qless: QlessDialect | None = None


class Scheduled(Event, tag="scheduled"):
    """Jobs whose dependencies are met, and that wait for their due time now."""

    rows: list[JobRow]


class Buried(Event, tag="buried"):
    """Jobs that a client or an operator moved to the dead jobs."""

    via: str
    due: float  #: wall; when they are expected to be purged
    rows: list[JobRow]
    freed: bool = False  #: their places in throttles are free
    due_steady: float = 0.0  #: `due` on the steady clock, which decides


class Removed(Event, tag="removed"):
    """Jobs were removed without success: `discarded`, `canceled`, `cleared`, `queue removed`, `purged`, `expired`,
    `ttl`, or `lease-expired` and `restarted` for foreground jobs. The lease of a leased job ends. `retired`: the job
    had succeeded and was kept until now.
    """

    why: str
    via: str
    rows: list[JobRow]
    t: float | None = None
    qless: QlessDialect | None = None
    reason: str = ""  #: as the client gave it


class Rerouted(Event, tag="rerouted"):
    """Waiting jobs were moved to another queue and are otherwise unchanged. The rows have the old queue."""

    via: str
    queue: str
    rows: list[JobRow]
    freed: bool = False  #: the jobs were held by a throttle or in a batch, and are ready now
