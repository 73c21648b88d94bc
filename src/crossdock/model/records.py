"""Records beside the job (model.md section 7): batches, schedules, intervals, throttles, rate limits, progress,
pauses of queues.
"""

from enum import IntEnum
from math import inf
from typing import Final

import msgspec

from crossdock.model.job import Form, Number, Spec, Token
from crossdock.model.protocol_data import Tag


class Batch(msgspec.Struct, array_like=True):
    """A Faktory batch: its jobs are counted, and the callbacks `complete` and `success` follow them.

    A member that failed, was removed or was killed is in `bad` until it succeeds. It counts as executed, so `complete`
    does not wait for it. `success` does.
    """

    name: str
    via: str  #: the protocol that opened it
    parent: str
    description: str
    created: float  #: wall
    complete: Spec | None
    success: Spec | None
    end: float  #: steady; it is forgotten then
    committed: bool = False
    total: int = 0
    pending: int = 0  #: members that have not succeeded
    bad: set[Number] = msgspec.field(default_factory=set)
    called: int = 0  #: bits of `Callback`: callbacks pushed
    answered: int = 0  #: bits of `Callback`: callbacks that succeeded
    finished: int = 0  #: bits of `Callback`: all is executed, or has succeeded, with callbacks and children
    open_complete: int = 0  #: children that are not `finished` in that sense
    open_success: int = 0


class Pause(msgspec.Struct, array_like=True, frozen=True):
    """Why a queue gives out no jobs."""

    since: float  #: wall
    reason: str = ""
    user: str = ""  #: "": a client of another protocol than the admin protocol


class Per(IntEnum):
    QUEUE = 0
    WORKER = 1


#: The prefix of the throttle that every job of a queue takes a place in.
OF_QUEUE: Final = "ql:q:"


class Throttle(msgspec.Struct, array_like=True):
    """A limit on the number of leases. A configured throttle counts the leases of a queue, in total or per worker. A
    throttle that callers set counts the jobs that name it.
    """

    queue: str  #: "": set by callers
    maximum: int | float  #: for a throttle that callers set, 0 means no limit
    per: Per = Per.QUEUE
    timeout_s: float = 0.0  #: seconds that a lease counts at most; 0: as long as it lasts
    #: For a configured throttle by lease: the worker, and the steady time at which the lease stops counting, the
    #: earliest first. Otherwise by jid, which may belong to a job that was moved to another queue.
    holders: dict[Token | str, tuple[str, float]] = msgspec.field(default_factory=dict)
    named: str = ""  #: the name that callers gave it
    #: Jobs that wait for a place: jid, and since when by the caller's clock. A job that was moved may still be here.
    pending: dict[str, float] = msgspec.field(default_factory=dict)
    end: float | None = inf  #: steady; the limit ends then. None: callers have removed their maximum

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
        """Whether it is full for every worker."""
        return self.per is Per.QUEUE and self.full("", steady)


class RateScope(IntEnum):
    """The jobs that a rate limit counts."""

    QUEUE = 0
    KIND = 1
    NAME = 2  #: those that carry its name (`Extra.rate`)


_SCOPES: Final = {scope: scope.name.lower() for scope in RateScope}

#: The source of a rate limit: the settings file, jobs that carry it, or the prefix of an application's name.
FROM_SETTINGS: Final = "settings"
FROM_JOBS: Final = "jobs"
FROM_APP: Final = "app:"

#: Sums of fractions are not exact, so a millionth of a lease may be missing.
_NEARLY: Final = 1e-6


def rate_key(source: str, scope: RateScope, name: str) -> str:
    return f"{source}/{_SCOPES[scope]}/{name}"


class Rate(msgspec.Struct, array_like=True):
    """A rate limit: at most `count` leases per `per_s` seconds, as a token bucket.

    The bucket holds at most `count` tokens and fills evenly. Each lease takes a token. So `count` leases may begin at
    once after a pause, and a time of T seconds has at most `count + T * count / per_s` leases.
    """

    name: str
    scope: RateScope
    target: str  #: the queue, the kind, or the name that jobs carry
    count: int
    per_s: float
    source: str
    tokens: float
    at: float = 0.0  #: steady; when there were that many tokens

    @property
    def key(self) -> str:
        return rate_key(self.source, self.scope, self.name)

    def level(self, steady: float) -> float:
        """How many tokens there are."""
        passed = steady - self.at
        if passed <= 0:
            return self.tokens
        tokens = self.tokens + passed * self.count / self.per_s
        return tokens if tokens < self.count else float(self.count)

    def room(self, steady: float) -> int:
        """How many leases may begin now."""
        return int(self.level(steady) + _NEARLY)

    def used_up(self, steady: float) -> bool:
        return self.level(steady) < 1 - _NEARLY

    def settle(self, steady: float) -> None:
        """Count the tokens up to now."""
        self.tokens = self.level(steady)
        self.at = max(self.at, steady)

    def take(self, steady: float) -> None:
        """A lease began."""
        self.settle(steady)
        self.tokens -= 1

    def change(self, count: int, per_s: float, steady: float) -> None:
        """Change the limit. The tokens stay, as far as they fit."""
        self.settle(steady)
        self.tokens = min(self.tokens, float(count))
        self.count, self.per_s = count, per_s

    def when(self, tokens: float) -> float:
        """Steady: when there are that many tokens, at most `count`. A time in the past if there are."""
        return self.at + max(0.0, tokens - self.tokens) * self.per_s / self.count


class RateSpec(msgspec.Struct, array_like=True, frozen=True):
    """A rate limit as settings and applications give it."""

    name: str
    scope: RateScope
    target: str
    count: int
    per_s: float


class Progress(msgspec.Struct, array_like=True):
    """The progress of a job by its jid. It outlives the job for a while."""

    state: str
    updated: float  #: wall
    percent: int | None = None
    text: str | None = None
    until: float = inf  #: steady; forgotten then. Infinity: not dated yet
    keep_s: float = 0.0  #: seconds to keep it after its last change; 0: half an hour
    same: int = 0  #: changes before the last one at the same time


class Outcome(msgspec.Struct, array_like=True):
    """How a job ended that was removed, by its jid."""

    state: str  #: `dead` or `cancelled`
    attempts: int
    error: str  #: the type
    message: str
    keep_s: float
    until: float = inf  #: steady; forgotten then. Infinity: not dated yet


#: How the name of an app's schedule begins. No name of a configured schedule or of a plan begins like this.
APP_PREFIX: Final = "\0app:"


class Schedule(msgspec.Struct, array_like=True, frozen=True):
    """A job that is pushed repeatedly. `next` is the wall time of its next run."""

    name: str
    via: str  #: the protocol of its jobs
    schedule: str  #: five cron fields
    zone: str  #: IANA name
    spec: Spec  #: for a run at time 0 on both clocks: the ends of its lock and of itself count from each run
    next: float
    plan: str = ""  #: the id under which a client made it (Resqu); then `schedule` is an interval. Empty: configured
    source: str = ""  #: of a plan: the source it belongs to
    text: bytes = b""  #: of a plan, or of an app's schedule its job: JSON as the client sent it
    app: str = ""  #: the app that set it; then `schedule` may also be `@every SECONDS`


class Phase(IntEnum):
    """The phase of a Resqu batch."""

    UNCOMMITTED = 0  #: not visible to clients
    COMMITTED = 1  #: waits for an allocator to assign it to a pool
    BACKLOG = 2  #: waits for the active batch of its source in that pool
    ACTIVE = 3  #: its jobs are leased as a lane of its pool


class ResquBatch(msgspec.Struct, array_like=True):
    """A Resqu batch: its jobs become visible all together or never, and are leased in order."""

    name: str
    via: str
    source: str
    job_name: str
    created: float  #: wall
    end: float  #: steady; it is abandoned then. Infinity: committed
    phase: Phase = Phase.UNCOMMITTED
    queue: str = ""  #: the pool
    total: int = 0  #: jobs pushed
    by_hand: bool = False  #: an allocator assigned it to the pool, and reports when it is finished
    since: float = 0.0  #: wall; when it was committed
    #: the number of its first job; a job with a smaller number belongs to an earlier batch of that name
    first: Number = 0


class Interval(msgspec.Struct, array_like=True, frozen=True):
    """A qless recurring job: the next lease of its queue creates the jobs that are due."""

    jid: str  #: its jobs are named `<jid>-1`, `<jid>-2` …
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
    backlog: int | float = 0  #: missed runs that are made up for; 0: all
    count: int = 0  #: jobs it has created
    throttles: tuple[str, ...] = ()  #: of its jobs
    old: bool = False  #: see `QlessData.old`
    by_server: bool = False  #: it follows the server's clock alone, and `next` is `next_at`
