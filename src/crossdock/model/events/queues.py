"""Events of queues and of the server: pauses, starts, flushes, operators' actions, expired records, unused numbers."""

import msgspec

from crossdock.model.events.base import Event, JobRow
from crossdock.model.job import Number, Token


class QueueSeen(Event, tag="queue-seen"):
    """A lease named the queue. Soft: it changes no job."""

    queue: str


class QueuePaused(Event, tag="queue-paused"):
    queue: str
    reason: str = ""  #: as the operator gave it
    user: str = ""  #: "": paused by a client of another protocol


class QueueResumed(Event, tag="queue-resumed"):
    queue: str


class QueueForgotten(Event, tag="queue-forgotten"):
    queue: str
    unlisted: bool = False  #: only removed from the list; its jobs and its pause stay


class Flushed(Event, tag="flushed"):
    """Everything but the numbers was removed (model.md section 11)."""

    via: str


class Audited(Event, tag="audited"):
    """An operator changed something. Long work has an event for each part, and all of them have the same `entry`."""

    entry: int  #: of the audit trail; ascending
    user: str  #: "": not known
    address: str
    via: str  #: admin or http
    action: str  #: the verb of the admin protocol
    target: str
    count: int  #: how many things were changed


class Started(Event, tag="started"):
    """The first event after each recovery. Leases that were bound to a connection are given back by it."""

    epoch: int
    steady: float
    rows: list[JobRow] = msgspec.field(default_factory=list)  #: of those leases
    boot: str = ""  #: the kernel's boot id; "": not known
    offset: float = 0.0  #: steady time is CLOCK_BOOTTIME plus this, until the next boot
    held_at: float = 0.0  #: steady; purges use this time until `held_until`
    held_until: float = 0.0  #: steady; 0: purges use the current time


class Expired(Event, tag="expired"):
    """Locks, batches, progress, places in throttles and outcomes whose time is over."""

    locks: list[str]
    batches: list[str]
    progress: list[str]
    steady: float = 0.0  #: a lock that ends later was taken again by an event of the same tick
    #: Queue and lease: the lease continues, but does not count for the throttle any more.
    holders: list[tuple[str, Token]] = msgspec.field(default_factory=list)
    outcomes: list[str] = msgspec.field(default_factory=list)  #: by jid


class NumbersDrawn(Event, tag="numbers-drawn"):
    """Numbers up to this one are used up without jobs."""

    number: Number
