"""What a door keeps about its own jobs (MODEL section 3), and the history that qless keeps of each.

Like all that a job refers to, these are replaced whole and never changed in place.
"""

from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

#: A tag as it was given: qless takes any JSON scalar. Tags that print alike are one in the index.
Tag: TypeAlias = str | int | float | bool


class FaktoryData(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="faktory"):
    """What the Faktory door shows again and no rule reads."""

    created_at: str = ""  #: as the client wrote it; empty: the server's time
    at: str = ""
    backtrace: int = 0
    priority: bool = False  #: the client sent one, so it is shown


class WorkqData(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="workq"):
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


class QlessData(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="qless"):
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


class ResquData(msgspec.Struct, array_like=True, frozen=True, gc=False, tag="resqu"):
    """A Resqu job as its lists show it. Source and name give its pool."""

    text: bytes  #: JSON as it was pushed; without an id and a time of its own unless `stamped`
    source: str
    name: str
    stamped: bool = True  #: it has `id` and `queue_time`; else they are the job's jid and the time it became ready
    defer: float | None = None  #: seconds after its blocker; None: it is not deferred
