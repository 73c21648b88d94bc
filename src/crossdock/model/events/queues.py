"""Events of queues and of the server: pauses, a start, a flush, expired records, numbers without jobs."""

import msgspec

from crossdock.model.events.base import Event, JobRow
from crossdock.model.job import Number, Token


class QueueSeen(Event, tag="queue-seen"):
    """A lease named the queue. Soft: it changes no job."""

    queue: str


class QueuePaused(Event, tag="queue-paused"):
    queue: str


class QueueResumed(Event, tag="queue-resumed"):
    queue: str


class QueueForgotten(Event, tag="queue-forgotten"):
    queue: str
    unlisted: bool = False  #: only removed from the list; its jobs and its pause stay


class Flushed(Event, tag="flushed"):
    """Everything but the numbers was removed (model.md section 11)."""

    via: str


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
    """Locks, batches, progress and places in throttles whose time is over."""

    locks: list[str]
    batches: list[str]
    progress: list[str]
    steady: float = 0.0  #: a lock that ends later was taken again by an event of the same tick
    #: Queue and lease: the lease continues, but does not count for the throttle any more.
    holders: list[tuple[str, Token]] = msgspec.field(default_factory=list)


class NumbersDrawn(Event, tag="numbers-drawn"):
    """Numbers up to this one are used up without jobs."""

    number: Number
