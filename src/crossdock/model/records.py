"""Records beside the job (MODEL section 7): groups, recurrences, batches, intervals, throttles, tracks."""

from enum import IntEnum
from math import inf
from typing import Final

import msgspec

from crossdock.model.job import Form, Number, Spec, Token
from crossdock.model.protocol_data import Tag


class Batch(msgspec.Struct, array_like=True):
    """Jobs that run at once and are counted; what `complete` and `success` name follows them.

    A member that failed, was removed or killed is in `bad` until it succeeds after all: it was executed, and
    `success` waits for ever if it never does.
    """

    name: str
    via: str  #: the door it was opened through
    parent: str
    description: str
    created: float  #: wall
    complete: Spec | None
    success: Spec | None
    end: float  #: steady; then it is forgotten
    committed: bool = False
    total: int = 0
    pending: int = 0  #: not yet succeeded
    bad: set[Number] = msgspec.field(default_factory=set)
    called: int = 0  #: bits of Call: callbacks pushed
    answered: int = 0  #: bits of Call: callbacks that succeeded
    finished: int = 0  #: bits of Call: all is executed, all has succeeded; callbacks and children included
    open_complete: int = 0  #: children that are not finished in that sense
    open_success: int = 0


class Per(IntEnum):
    QUEUE = 0
    WORKER = 1


#: What callers call the throttle that every job of a queue takes a place in.
OF_QUEUE: Final = "ql:q:"


class Throttle(msgspec.Struct, array_like=True):
    """At most so many leases at a time: of one queue, in all or for each worker, as configured; or, set by callers, of
    the jobs that name it."""

    queue: str  #: "": it is not configured
    maximum: int | float  #: if callers set it, 0 means any number
    per: Per = Per.QUEUE
    timeout_s: float = 0.0  #: a lease counts no longer than this; 0: as long as it lasts
    #: By lease, if it is configured: worker and end (steady); the one that ends first comes first, and is let go then,
    #: or when its lease is over. Else by jid: it may be held by a job that was put elsewhere meanwhile
    holders: dict[Token | str, tuple[str, float]] = msgspec.field(default_factory=dict)
    named: str = ""  #: by callers
    #: jid and when, by its caller's clock: who waits for a place. A job put elsewhere may still be among them
    pending: dict[str, float] = msgspec.field(default_factory=dict)
    end: float | None = inf  #: steady; then any number may hold it. None: callers have taken their maximum back

    @property
    def name(self) -> str:
        return self.named or OF_QUEUE + self.queue

    def is_set(self, steady: float) -> bool:
        return self.end is not None and steady < self.end

    def most(self, steady: float) -> int | float:
        return self.maximum if self.is_set(steady) and (self.maximum or self.queue) else inf

    def full(self, worker: str, steady: float) -> bool:
        if len(self.holders) < self.maximum or self.most(steady) == inf:
            return False
        return (
            sum(
                1
                for holder, end in self.holders.values()
                if end > steady and (self.per is Per.QUEUE or holder == worker)
            )
            >= self.maximum
        )

    def shut(self, steady: float) -> bool:
        """Full for everybody."""
        return self.per is Per.QUEUE and self.full("", steady)


class Progress(msgspec.Struct, array_like=True):
    """What is known of a job under its jid, for a while after it is gone."""

    state: str
    updated: float  #: wall
    end: float  #: wall; so much later. Old journals, which have no other end, go by it
    percent: int | None = None
    text: str | None = None
    until: float = inf  #: steady; forgotten then. Infinity: not dated yet
    keep_s: float = 0.0  #: after its last change; 0: half an hour


class Schedule(msgspec.Struct, array_like=True, frozen=True):
    """A job pushed again and again. `next` is the wall time of its next run."""

    name: str
    via: str  #: the door whose kind of job it is
    schedule: str  #: five cron fields
    zone: str  #: IANA name
    spec: Spec  #: as of a run at 0 on both clocks: the ends of its lock and of itself count from each run
    next: float
    plan: str = ""  #: a client made it under this id (Resqu); then the schedule is an interval. Empty: configured
    source: str = ""  #: of a plan: whose it is
    text: bytes = b""  #: of a plan: as it was given


class Phase(IntEnum):
    """How far a batch of Resqu's is."""

    UNCOMMITTED = 0  #: nobody sees it
    COMMITTED = 1  #: waits for an allocator to give it to a pool
    BACKLOG = 2  #: waits for its source's active batch in that pool
    ACTIVE = 3  #: a lane of its pool


class ResquBatch(msgspec.Struct, array_like=True):
    """A batch of Resqu's: jobs that become visible all at once or never, and are worked in order."""

    name: str
    via: str
    source: str
    job_name: str
    created: float  #: wall
    end: float  #: steady; it is abandoned then. Infinity: committed
    phase: Phase = Phase.UNCOMMITTED
    queue: str = ""  #: the pool
    total: int = 0  #: jobs pushed
    by_hand: bool = False  #: an allocator gave it to the pool, and will say when it is finished
    since: float = 0.0  #: wall; committed then
    first: Number = 0  #: its first job's: one with a smaller number came with another batch of that name


class Interval(msgspec.Struct, array_like=True, frozen=True):
    """A job made again and again at an interval, when somebody leases from its queue (qless' recurring jobs)."""

    jid: str  #: its jobs are called `<jid>-1`, `<jid>-2` …
    queue: str
    kind: str
    payload: bytes
    form: Form
    seconds: int | float
    next: float  #: by callers' clocks
    next_at: float  #: wall
    priority: int | float = 0
    tags: tuple[Tag, ...] = ()
    retries: int | float = 0
    backlog: int | float = 0  #: missed slots that are made up for; 0: all
    count: int = 0  #: jobs it has made
    throttles: tuple[str, ...] = ()  #: of its jobs
    old: bool = False  #: see `QlessFace.old`
    by_server: bool = False  #: no caller's clock brings it forward; `next` is `next_at`
