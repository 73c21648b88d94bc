"""Base classes: of all events, of events about one job, and of events that end a lease."""

import msgspec

from crossdock.model.job import Number, Token


class Event(msgspec.Struct, array_like=True, gc=False):
    """Never changed after it was made."""

    at: float  #: the server's wall time, never decreasing; the date in the lake


class EndedLease(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A lease that ended together with its job."""

    token: Token
    via: str  #: the protocol it was leased through
    worker: str
    leased_at: float
    wait_s: float
    run_s: float
    beats: int


class JobRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One job in an event about several jobs."""

    number: Number
    jid: str
    queue: str
    kind: str
    origin: str
    attempt: int
    priority: int | float
    payload_bytes: int
    ended: EndedLease | None = None
    worker: str = ""  #: the last holder that a qless job names while it is not leased
    failed_at: float | None = None  #: for a kept failure of a qless job: the time under which it is counted
    over: bool = False  #: it had ended before: complete, failed or dead
    #: As in `ClosingEvent`, if the event may end the job or a lease. None: not known
    pushed_at: float | None = None


class JobEvent(Event):
    number: Number
    jid: str
    queue: str
    kind: str
    origin: str
    via: str  #: the protocol that made the change; "" for a timer
    worker: str
    attempt: int
    priority: int | float
    payload_bytes: int


class ClosingEvent(JobEvent):
    """An event that ends a lease, with the data of that lease. Token 0: the job was settled without a lease, and
    nothing is counted.

    The last field of each such event is `pushed_at`, by the server's clock: when the job was pushed, or put again after
    it had ended. None: not known.
    """

    token: Token
    leased_at: float
    wait_s: float
    run_s: float  #: counted under (queue, day of at)
    beats: int
