"""Events of queues, and of the server as a whole: a start, a flush, what the clock ends, numbers without jobs."""

import msgspec

from crossdock.model.events.base import Event, JobRow
from crossdock.model.job import Number, Token


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
    rows: list[JobRow] = msgspec.field(default_factory=list)  #: of those leases
    boot: str = ""  #: the kernel's boot id; "": not known
    offset: float = 0.0  #: steady time is CLOCK_BOOTTIME plus this, as long as that boot lasts
    held_at: float = 0.0  #: steady; until `held_until` purges go by this time
    held_until: float = 0.0  #: steady; 0: purges are not held


class Expired(Event, tag="expired"):
    """Locks, groups, tracks and places in a throttle whose time is over."""

    locks: list[str]
    batches: list[str]
    progress: list[str]
    steady: float = 0.0  #: locks that end later were taken anew by an event of the same tick
    #: queue and lease: it goes on, and counts for its throttle no longer
    holders: list[tuple[str, Token]] = msgspec.field(default_factory=list)


class NumbersDrawn(Event, tag="numbers-drawn"):
    """Numbers up to this one are used up without jobs."""

    number: Number
