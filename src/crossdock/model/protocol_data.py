"""Protocol data: what a protocol stores about its own jobs (model.md section 3), and the history of a qless job.

These values are replaced as a whole and never changed in place.
"""

from enum import IntEnum
from math import floor
from typing import ClassVar, Final, TypeAlias

import msgspec

#: A tag as the client gave it: qless accepts any JSON scalar. Tags with the same text are one tag in the index.
Tag: TypeAlias = str | int | float | bool


class ProtocolData(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The base class. It declares what the rest of the engine reads."""

    #: A job that returns to a forgotten queue registers it again.
    registers_queue: ClassVar[bool] = True

    #: Of two ready jobs of equal priority and time, the one with the greater jid comes first, byte by byte.
    orders_by_jid: ClassVar[bool] = False

    #: A failure is counted when the job is kept as failed, and taken off the count when it is not failed any more.
    #: Otherwise every failure is counted.
    books_kept_failures: ClassVar[bool] = False

    #: Seconds that progress is kept after its last change. 0: the default.
    progress_s: ClassVar[float] = 0.0

    def lazily_due(self) -> bool:
        """Whether its due time is evaluated on the next lease, not by a timer."""
        return False

    def waits_lazily(self) -> bool:
        """The same for a blocked job, once its dependencies are met."""
        return False

    def keeps_dependencies(self) -> bool:
        """Whether its dependencies stay recorded while it does not wait for them."""
        return False

    def keeps_history(self) -> bool:
        """Whether its history is not cut to the configured length."""
        return False

    def blocked_since(self, created: float) -> float:
        return created

    def held_since(self, created: float) -> float:
        return created

    def last_holder(self) -> str:
        """The worker that is shown while the job is not leased."""
        return ""


class FaktoryData(ProtocolData, frozen=True, tag="faktory"):
    """What Faktory shows again, and no policy reads."""

    created_at: str = ""  #: as the client wrote it; empty: the server's time
    at: str = ""
    backtrace: int = 0
    priority: bool = False  #: the client sent a priority, so it is shown


class WorkqData(ProtocolData, frozen=True, tag="workq"):
    """What `inspect job` of Workq shows again, and no policy reads."""

    ttl_ms: int = 0
    time: float = 0.0  #: wall; as given to `schedule`. 0: the job came by `add` or `run`
    max_fails: int = 0


class HistoryKind(IntEnum):
    """The entries of a job's history (qless.md section 4)."""

    PUT = 0
    POPPED = 1
    DONE = 2
    FAILED = 3
    TIMED_OUT = 4
    SAID = 5  #: a text that a client added
    EXHAUSTED = 6  #: failed: the retry was the last one
    THROTTLED = 7  #: a throttle was full


class HistoryEntry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    when: float  #: whole seconds
    what: HistoryKind
    #: PUT, THROTTLED: the queue. POPPED, FAILED: the worker, empty after the last try. SAID: the text.
    name: str = ""
    group: str = ""  #: FAILED, EXHAUSTED
    data: bytes = b""  #: SAID: a JSON value, or nothing


#: A part of a backoff that the job does not set: the settings of the PHP fork apply when its lease expires.
AS_CONFIGURED: Final = -1.0


class QlessData(ProtocolData, frozen=True, tag="qless"):
    """What qless shows of a job. Times are by its callers' clocks."""

    retries: int | float = 5  #: as given; `Policy.max_failures` is this, rounded down
    time: float = 0.0  #: of the last put, pop or completion
    due: float | None = None  #: when it becomes ready, while it waits for that
    state: str = ""  #: shown instead of the name of its state
    worker: str = ""  #: shown while it is not leased: its last holder
    expires: float = 0.0  #: the end of the last lease as its holder knows it, also after a warning
    queue: str = ""  #: shown instead of the queue it is in
    spawned_from: str = ""
    order: int = 0  #: its order among failed jobs; later failures have a higher number
    held: float = 0.0  #: when a throttle last held it
    #: Put by a script of 2013 or before: its history is not cut, and its dependencies are kept even if it waits for a
    #: time or does not wait.
    old: bool = False
    sticky: tuple[Tag, ...] = ()  #: tags that it does not have any more, under which it is still found
    #: Seconds that it waits after a lease expiry, and the factor by which they grow each time (the PHP fork). Either
    #: may be `AS_CONFIGURED`.
    backoff: tuple[float, float] | None = None
    #: when it is due once its dependencies are met: by its caller's clock, and wall
    parked: tuple[float, float] | None = None

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


class QlessDialect(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How a qless dialect settles, removes or readies a job where other protocols do it another way.

    Commands and events carry it as `qless`, None for other protocols. The defaults change nothing.
    """

    booked_queue: str = ""  #: the queue that the caller named: statistics count the change there
    unrecorded: bool = False  #: the failure is not recorded on the job unless this was its last try
    #: The failure is not counted if this was the last try. A failed job that is removed stays counted as failed.
    uncounted: bool = False
    unpublished: bool = False  #: nothing is published if this was the last try (reqless)
    names_worker: bool = False  #: the worker is recorded even if the failure is not (the oldest dialect)
    #: The run is counted in whole seconds, and freed dependents stand before others of their priority (the oldest
    #: dialect).
    oldest: bool = False
    still_scheduled: bool = False  #: a job that became ready is still shown as scheduled (the oldest dialect, on a pop)

    def shown_failure(self, t: float, worker: str) -> tuple[float, str]:
        """The time and the worker that qless shows for a failure at `t`."""
        when = t if self.unrecorded else float(floor(t))
        return when, "" if self.unrecorded and not self.names_worker else worker


class ResquData(ProtocolData, frozen=True, tag="resqu"):
    """A Resqu job as its lists show it. Its source and name decide its pool."""

    text: bytes  #: JSON as it was pushed; without `id` and `queue_time` unless `stamped`
    source: str
    name: str
    #: it has its own `id` and `queue_time`; otherwise these are its jid and the time it became ready
    stamped: bool = True
    defer: float | None = None  #: seconds to wait after the job that blocks it; None: it is not deferred

    progress_s: ClassVar[float] = 86_400.0
