"""The job: one struct of what every job has, one of what few have.

Jobs are outside the garbage collector (`gc=False`) and name other jobs by number, so a million of them cost a
collection nothing. `Extra`, `Failure` and the faces are never changed in place: an event of the same turn may still
hold them unencoded. Writers replace them whole.
"""

from enum import IntEnum
from typing import TypeAlias

import msgspec

from crossdock.model.error_groups import error_group, has_type
from crossdock.model.policies import Policy
from crossdock.model.protocol_data import FaktoryData as FaktoryData
from crossdock.model.protocol_data import HistoryEntry, QlessData, Tag
from crossdock.model.protocol_data import ResquData as ResquData
from crossdock.model.protocol_data import WorkqData as WorkqData
from crossdock.model.states import State

Number: TypeAlias = int  #: the engine's key of a job: 1, 2, 3 …, never reused
Token: TypeAlias = int  #: names one lease; a settlement that names an older one changes nothing

#: A lease somebody was given: of which job, and which one
LeaseRef = tuple[Number, Token]

#: (-priority, band, stamp, tie, number): the order of ready jobs within a queue (MODEL section 5). The tie is empty but
#: for qless, where it is made of the jid.
SortKey = tuple[int | float, int, float, bytes, int]

BAND_OVERTAKES, BAND_NORMAL, BAND_SCHEDULED = 0, 1, 2


class Form(IntEnum):
    """What the bytes of a payload are."""

    NONE = 0
    RAW = 1
    JSON = 2


_as_json = msgspec.json.Decoder(msgspec.Raw).decode


def form_of(payload: bytes) -> Form:
    """JSON is what everybody's parser takes for it."""
    try:
        payload.decode()
        _as_json(payload)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return Form.RAW
    return Form.JSON


class LeaseBinding(IntEnum):
    """To whom a lease is bound: who else may settle it."""

    NOBODY = 0
    WORKER = 1
    CONNECTION = 2


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last error of a job."""

    group: str  #: Faktory errtype, qless group
    message: str
    backtrace: tuple[str, ...]
    first_at: float  #: wall; the job's first failure
    at: float  #: wall; this one
    next_at: float  #: wall; the next try it led to. Stays as it was when the job ends; 0: it never had one
    lost: bool  #: nobody reported it: the lease ran out
    when: float | None = None  #: as qless shows it, by its caller's clock; None: `at`
    worker: str = ""  #: as qless shows it

    @property
    def text(self) -> str:
        """For people. Masenko's workers and Workq's name neither group nor message."""
        if self.message and not has_type(self.group):
            return self.message
        return ": ".join(filter(None, (self.group, self.message))) or "failed (no reason given)"

    @property
    def listed_in(self) -> str:
        """The group an operator finds it in. qless lists it under `group`."""
        return error_group(self.group, self.message)


class Result(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a settlement left behind, kept with the job where its rules keep it."""

    ok: bool
    body: bytes = b""


class LockRelease(IntEnum):
    """What frees a lock, besides its own end and the end of its holder."""

    START = 0  #: the holder's first lease
    SUCCESS = 1
    END = 2  #: any end of it; also when its tries are over and it is kept for a person


class LockTerms(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The lock a job takes when it is pushed: no other job gets in under that name while it is held."""

    name: str
    end: float  #: steady
    freed: LockRelease


class Callback(IntEnum):
    """Which of a group's two callbacks a job is."""

    COMPLETE = 1  #: every member was executed
    SUCCESS = 2  #: every member succeeded


class Links(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What ties a job to records beside it (MODEL section 7)."""

    lock: LockTerms | None = None
    group: str = ""  #: it is a member of
    calls: str = ""  #: it is a callback of
    call: Callback | None = None
    expires: float = 0.0  #: wall; gone if it is about to be leased later than this
    tracked: bool = False
    depends_on: tuple[Number, ...] = ()  #: it waits for these. In a transaction -n is the n-th spec before this one
    ttl_s: float = 0.0  #: gone, in whatever state, this long after it was pushed or, if scheduled, due; 0: never
    foreground: bool = False  #: its pusher waits for it and nobody else will: gone with a restart
    expires_steady: float = 0.0  #: `expires` on the steady clock: gone only if both clocks agree. 0: an older journal


class Extra(msgspec.Struct, array_like=True, frozen=True, gc=False):
    custom: bytes = b""  #: JSON object as pushed
    protocol_data: FaktoryData | WorkqData | QlessData | ResquData | None = None
    error: Failure | None = None
    links: Links | None = None
    result: Result | None = None
    deadqueue: str = ""  #: where it goes when its tries end; cleared by going there
    spent: bool = False  #: its tries ended and it went there: nobody waits for it any more
    tags: tuple[Tag, ...] = ()
    history: tuple[HistoryEntry, ...] = ()  #: of a job with qless' face all of it, of others what was added by hand
    warned: bool = False  #: its worker was told that the lease ran out; the next time it is taken away
    throttles: tuple[str, ...] = ()  #: names of those it takes a place in while it is leased (reqless)
    stage: str = ""  #: the batch it came with, until it is retried
    replayed_from: str = ""  #: the jid of the job that this one repeats


class Lease(msgspec.Struct, array_like=True, gc=False):
    token: Token
    via: str  #: the door it was leased through
    worker: str
    at: float  #: wall
    began: float  #: steady
    end: float  #: steady
    wait_s: float
    bound: LeaseBinding = LeaseBinding.NOBODY
    beats: int = 0
    until: float | None = None  #: the end by its caller's clock, if it was leased by one
    late: float | None = None  #: steady; then it may be taken away, by whoever leases next. `end` is infinite
    t: float | None = None  #: when it began by its caller's clock


class Job(msgspec.Struct, array_like=True, gc=False):
    number: Number
    jid: str
    queue: str
    kind: str
    origin: str  #: the door it came through
    payload: bytes
    form: Form
    priority: int | float  #: higher first, 0 is normal
    policy: Policy
    state: State
    created: float  #: wall
    since: float  #: wall; when it last became ready (Faktory enqueued_at)
    due: float = 0.0  #: wall; when a scheduled or retrying job becomes ready, when a dead one is purged
    sort_key: SortKey | None = None  #: kept while leased: a lease given back returns to it
    attempts: int = 0  #: leases, never reset
    failures: int = 0
    lease: Lease | None = None
    extra: Extra | None = None
    end: float = 0.0  #: steady; gone then in whatever state. 0: never, or not running yet
    #: Steady; `due` of a retrying or dead job on the clock that decides, of a complete one with qless' face when it was
    #: completed. 0: an older journal
    due_steady: float = 0.0

    def carry(self, payload: bytes) -> None:
        """A worker put this in its place, which may be what only the scripts take for JSON."""
        self.payload, self.form = payload, form_of(payload)


class Spec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A job as a door hands it in, and as its event keeps it."""

    jid: str
    queue: str
    kind: str
    payload: bytes
    form: Form
    priority: int | float  #: higher first, 0 is normal
    policy: Policy
    due: float = 0.0  #: wall; 0 or past: ready at once
    extra: Extra | None = None
    failures: int = 0
