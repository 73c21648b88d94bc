"""What events have in common: all of them, those about one job, and those that end a lease."""

import msgspec

from crossdock.model.job import Number, Token


class Event(msgspec.Struct, array_like=True, gc=False):
    """Never changed once it is made."""

    at: float  #: the server's wall time, never decreasing; the lake's date


class EndedLease(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A lease that ended with its job: what a closing event says of it."""

    token: Token
    via: str  #: the door it was leased through
    worker: str
    leased_at: float
    wait_s: float
    run_s: float
    beats: int


class JobRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One job in an event about many."""

    number: Number
    jid: str
    queue: str
    kind: str
    origin: str
    attempt: int
    priority: int | float
    payload_bytes: int
    ended: EndedLease | None = None
    worker: str = ""  #: of a qless job that nobody holds: whom it still names
    failed_at: float | None = None  #: of a kept failure with qless' face: the time it was booked by
    over: bool = False  #: it had ended before: complete, failed or dead


class JobEvent(Event):
    number: Number
    jid: str
    queue: str
    kind: str
    origin: str
    via: str  #: the door that made the change; "" for a timer
    worker: str
    attempt: int
    priority: int | float
    payload_bytes: int


class ClosingEvent(JobEvent):
    """Ends a lease, and says all about it. Token 0: the job was settled without one, and nothing is booked."""

    token: Token
    leased_at: float
    wait_s: float
    run_s: float  #: booked on (queue, day of at)
    beats: int
