"""The job: one struct for what every job has, and `Extra` for what few jobs have.

Jobs are outside the garbage collector (`gc=False`) and refer to other jobs by number, so a million of them add nothing
to a collection. `Extra`, `Failure` and protocol data are never changed in place, because an event that is not encoded
yet may refer to them. Writers replace them as a whole.
"""

import re
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from crossdock.model.policies import Policy
from crossdock.model.protocol_data import FaktoryData as FaktoryData
from crossdock.model.protocol_data import HistoryEntry, QlessData, Tag
from crossdock.model.protocol_data import ResquData as ResquData
from crossdock.model.protocol_data import WorkqData as WorkqData
from crossdock.model.states import State

Number: TypeAlias = int  #: the engine's key of a job: 1, 2, 3 …, never reused
Token: TypeAlias = int  #: names one lease; a settlement that names an older lease changes nothing

#: A lease that was given out: the job and the lease.
LeaseRef = tuple[Number, Token]

#: (-priority, band, stamp, tie, number): the order of ready jobs within a queue (model.md section 5). The tie is made
#: from the jid for qless jobs, and empty for all others.
SortKey = tuple[int | float, int, float, bytes, int]

BAND_OVERTAKES, BAND_NORMAL, BAND_SCHEDULED = 0, 1, 2


class Form(IntEnum):
    """The encoding of a payload."""

    NONE = 0
    RAW = 1
    JSON = 2


_as_json = msgspec.json.Decoder(msgspec.Raw).decode


def form_of(payload: bytes) -> Form:
    """JSON if the payload is valid JSON in UTF-8, otherwise raw bytes."""
    try:
        payload.decode()
        _as_json(payload)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return Form.RAW
    return Form.JSON


class LeaseBinding(IntEnum):
    """Which callers besides the holder may settle a lease."""

    UNBOUND = 0
    WORKER = 1
    CONNECTION = 2


#: Error types without meaning: JavaScript's undefined and null as text, and placeholders for a missing type.
_NO_TYPE: Final = frozenset({"", "undefined", "null", "unknown"})

#: Placeholders for a missing message.
_NO_MESSAGE: Final = frozenset({"", "undefined", "null", "unknown"})

_WORDS: Final = 5
_CHARS: Final = 80
#: Characters of a message that are read.
_LOOKED_AT: Final = 500

#: A UUID, a hexadecimal number, a long run of hexadecimal digits that contains a decimal one, or a decimal number.
_VARIES: Final = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b|[0-9]+",
    re.ASCII | re.IGNORECASE,
)


def has_type(group: str) -> bool:
    return group not in _NO_TYPE


def error_group(group: str, message: str) -> str:
    """The group in which an operator finds a failure: the error type, or the first words of the message without one.

    npm's `faktory-worker` sends the error's `code` as its type. A plain `Error` has none, so its type is the word
    `undefined`. Other clients send no type at all. All their failures would be one group, but the first words of a
    message name its cause. Up to 5 words and 80 characters are used. Numbers and ids are replaced by N, so that the
    number of groups stays small.
    """
    if group not in _NO_TYPE:
        return group
    folded = _VARIES.sub("N", message[:_LOOKED_AT])
    words = " ".join(folded.split()[:_WORDS])[:_CHARS]
    return group if words in _NO_MESSAGE else words


class Failure(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The last error of a job."""

    group: str  #: Faktory errtype, qless group
    message: str
    backtrace: tuple[str, ...]
    first_at: float  #: wall; the first failure of the job
    at: float  #: wall; this failure
    next_at: float  #: wall; the next try after this failure. Unchanged when the job ends; 0: there never was one
    lost: bool  #: no worker reported it: the lease expired
    when: float | None = None  #: as qless shows it, by its caller's clock; None: `at`
    worker: str = ""  #: as qless shows it

    @property
    def text(self) -> str:
        """For people. Workers of Masenko and Workq report neither a group nor a message."""
        if self.message and not has_type(self.group):
            return self.message
        return ": ".join(filter(None, (self.group, self.message))) or "failed (no reason given)"

    @property
    def listed_in(self) -> str:
        """The group in which an operator finds it. qless lists it under `group`."""
        return error_group(self.group, self.message)


class Result(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The result of a settlement. The policy of the job decides whether it is kept."""

    ok: bool
    body: bytes = b""


class LockRelease(IntEnum):
    """What frees a lock, besides its own end and the removal of its holder."""

    START = 0  #: the holder's first lease
    SUCCESS = 1
    END = 2  #: any end of the holder, also when it is kept after its last try


class LockTerms(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The unique lock that a job takes when it is pushed. No other job is enqueued under that name while it is held."""

    name: str
    end: float  #: steady
    freed: LockRelease


class Callback(IntEnum):
    """Which of the two callbacks of a batch a job is."""

    COMPLETE = 1  #: every member was executed
    SUCCESS = 2  #: every member succeeded


class Links(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What connects a job to the records beside it (model.md section 7)."""

    lock: LockTerms | None = None
    batch: str = ""  #: the batch it is a member of
    callback_of: str = ""  #: the batch it is a callback of
    callback: Callback | None = None
    expires: float = 0.0  #: wall; a job that is found later than this is removed instead of leased
    tracked: bool = False
    depends_on: tuple[Number, ...] = ()  #: the jobs it waits for. In a transaction -n is the n-th spec before this one
    #: seconds after the push, or after the due time, at which the job is removed in any state; 0: never
    ttl_s: float = 0.0
    foreground: bool = False  #: the client that pushed it waits for it, so it is removed at a restart
    expires_steady: float = 0.0  #: `expires` on the steady clock: the job is removed only if both clocks agree
    keep_result_s: float = 0.0  #: seconds that its result or outcome is kept after its end


class RateTerms(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A rate limit that a job carries. All jobs that carry the same name share it."""

    name: str
    count: int  #: leases per `per_s` seconds
    per_s: float


class Extra(msgspec.Struct, array_like=True, frozen=True, gc=False):
    custom: bytes = b""  #: JSON object as pushed
    protocol_data: FaktoryData | WorkqData | QlessData | ResquData | None = None
    error: Failure | None = None
    links: Links | None = None
    result: Result | None = None
    deadqueue: str = ""  #: the queue it goes to after its last try; cleared when it goes there
    spent: bool = False  #: it went to its dead queue after its last try, and dependents do not wait for it any more
    tags: tuple[Tag, ...] = ()
    history: tuple[HistoryEntry, ...] = ()  #: all entries of a qless job; for other jobs those that clients added
    warned: bool = False  #: its holder was warned that the lease expired; the next time the job is taken away
    throttles: tuple[str, ...] = ()  #: throttles in which it takes a place while it is leased (reqless)
    resqu_batch: str = ""  #: the Resqu batch it came with, until it is retried
    replayed_from: str = ""  #: the jid of the job that this one replays
    #: Wall; when the job was put again after it had ended, or rescheduled after a success. None: `Job.created`
    pushed_at: float | None = None
    rate: RateTerms | None = None  #: the rate limit that it carries
    #: the key of the rate limit that holds it, or that last made it ready again
    held_by: str = ""


class Lease(msgspec.Struct, array_like=True, gc=False):
    token: Token
    via: str  #: the protocol it was leased through
    worker: str
    at: float  #: wall
    began: float  #: steady
    end: float  #: steady
    wait_s: float
    bound: LeaseBinding = LeaseBinding.UNBOUND
    beats: int = 0
    until: float | None = None  #: the end by the caller's clock, if the caller has one
    #: steady; the next lease of the queue may take the job away after this. `end` is infinite
    late: float | None = None
    t: float | None = None  #: the beginning by the caller's clock


class Job(msgspec.Struct, array_like=True, gc=False):
    number: Number
    jid: str
    queue: str
    kind: str
    origin: str  #: the protocol it was pushed through
    payload: bytes
    form: Form
    priority: int | float  #: higher first, 0 is normal
    policy: Policy
    state: State
    created: float  #: wall
    since: float  #: wall; when it last became ready (Faktory enqueued_at)
    due: float = 0.0  #: wall; when a scheduled or retrying job becomes ready, or a dead one is purged
    sort_key: SortKey | None = None  #: kept while the job is leased: if the lease is given back, the job returns to it
    attempts: int = 0  #: leases so far, never reset
    failures: int = 0
    lease: Lease | None = None
    extra: Extra | None = None
    end: float = 0.0  #: steady; the job is removed then in any state. 0: never, or its time does not run yet
    #: Steady: `due` of a retrying or dead job on the clock that decides. For a complete qless job, when it was
    #: completed.
    due_steady: float = 0.0

    def carry(self, payload: bytes) -> None:
        """Replace the payload by what a worker sent, which may not be valid JSON."""
        self.payload, self.form = payload, form_of(payload)


class Spec(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A job as a protocol pushes it, and as its event stores it."""

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
