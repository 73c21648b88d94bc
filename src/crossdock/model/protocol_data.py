"""What a door keeps about its own jobs (MODEL section 3), and the history that qless keeps of each.

Like all that a job refers to, these are replaced whole and never changed in place.
"""

from enum import IntEnum
from typing import ClassVar, Final, TypeAlias

import msgspec

#: A tag as it was given: qless takes any JSON scalar. Tags that print alike are one in the index.
Tag: TypeAlias = str | int | float | bool


class ProtocolData(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The base of them. It declares all that the rest of the engine reads of them."""

    #: A job that comes back to a forgotten queue registers it again.
    registers_queue: ClassVar[bool] = True

    #: Of two ready jobs of equal priority and time the one with the greater jid comes first, byte by byte.
    orders_by_jid: ClassVar[bool] = False

    #: A failure is booked when the job is kept as failed, and taken off the count when it is failed no longer. Else
    #: each failure is booked.
    books_kept_failures: ClassVar[bool] = False

    #: Seconds that progress is kept after its last change; 0: the usual time.
    progress_s: ClassVar[float] = 0.0

    def lazily_due(self) -> bool:
        """Its due time is evaluated on the next lease, not by a timer."""
        return False

    def waits_lazily(self) -> bool:
        """The same of a blocked job, once its dependencies are met."""
        return False

    def keeps_dependencies(self) -> bool:
        """Its dependencies are recorded even while it does not wait for them."""
        return False

    def keeps_history(self) -> bool:
        """Its history is not cut to the configured length."""
        return False

    def blocked_since(self, created: float) -> float:
        return created

    def held_since(self, created: float) -> float:
        return created

    def last_holder(self) -> str:
        """The worker that is shown while nobody holds the job."""
        return ""


class FaktoryData(ProtocolData, frozen=True, tag="faktory"):
    """What the Faktory door shows again and no rule reads."""

    created_at: str = ""  #: as the client wrote it; empty: the server's time
    at: str = ""
    backtrace: int = 0
    priority: bool = False  #: the client sent one, so it is shown


class WorkqData(ProtocolData, frozen=True, tag="workq"):
    """What `inspect job` shows again and no rule reads."""

    ttl_ms: int = 0
    time: float = 0.0  #: wall; as given to `schedule`, 0: it came by `add` or `run`
    max_fails: int = 0


class HistoryKind(IntEnum):
    """The entries of a job's history (protocol page, qless 4, P1)."""

    PUT = 0
    POPPED = 1
    DONE = 2
    FAILED = 3
    TIMED_OUT = 4
    SAID = 5  #: a text of somebody's own
    EXHAUSTED = 6  #: failed: a retry was the last one
    THROTTLED = 7  #: a throttle was full


class HistoryEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    when: float  #: whole seconds
    what: HistoryKind
    #: PUT, THROTTLED: the queue; POPPED, FAILED: the worker, empty when the tries were over; SAID: the text
    name: str = ""
    group: str = ""  #: FAILED, EXHAUSTED
    data: bytes = b""  #: SAID: a JSON value, or nothing


#: Part of a backoff that the job does not say: the settings of the PHP fork count when its lease runs out.
AS_CONFIGURED: Final = -1.0


class QlessData(ProtocolData, frozen=True, tag="qless"):
    """What qless shows, and its callers' clock: times here are theirs."""

    retries: int | float = 5  #: as given; `Rules.max_failures` is this, rounded down
    time: float = 0.0  #: of the last put, pop or completion
    due: float | None = None  #: when it becomes ready, while it waits for that
    state: str = ""  #: shown in place of what the engine's state would be called
    worker: str = ""  #: shown while nobody holds it: whoever held it last and was not rid of it
    expires: float = 0.0  #: as its last holder was told, also while it is warned
    queue: str = ""  #: shown in place of the queue it stands in
    spawned_from: str = ""
    order: int = 0  #: among the failed: later ones have a higher number
    held: float = 0.0  #: when a throttle was full last
    #: Put by a script of 2013 or before: its history is not cut, and what it needs is not forgotten while it waits
    #: for a time instead, or does not wait at all
    old: bool = False
    sticky: tuple[Tag, ...] = ()  #: tags that it is found under and has no longer
    #: Seconds that a lease which ran out keeps it waiting, and by what they grow each time (the PHP fork); either may
    #: be `AS_CONFIGURED`
    backoff: tuple[float, float] | None = None
    parked: tuple[float, float] | None = None  #: when it is due once it needs nothing: by its caller's clock, and wall

    registers_queue: ClassVar[bool] = False
    orders_by_jid: ClassVar[bool] = True
    books_kept_failures: ClassVar[bool] = True

    def lazily_due(self) -> bool:
        return self.due is not None

    def waits_lazily(self) -> bool:
        return self.due is not None or self.parked is not None

    def keeps_dependencies(self) -> bool:
        return self.old

    def keeps_history(self) -> bool:
        return self.old

    def blocked_since(self, created: float) -> float:
        return self.time

    def held_since(self, created: float) -> float:
        return self.held

    def last_holder(self) -> str:
        return self.worker


class ResquData(ProtocolData, frozen=True, tag="resqu"):
    """A Resqu job as its lists show it. Source and name give its pool."""

    text: bytes  #: JSON as it was pushed; without an id and a time of its own unless `stamped`
    source: str
    name: str
    stamped: bool = True  #: it has `id` and `queue_time`; else they are the job's jid and the time it became ready
    defer: float | None = None  #: seconds after its blocker; None: it is not deferred

    progress_s: ClassVar[float] = 86_400.0
