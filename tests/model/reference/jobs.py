"""A job as the reference keeps it: its lease, its last error, and which states are an end."""

from dataclasses import dataclass, field
from typing import Final

from crossdock.model.clock import Now
from crossdock.model.job import LeaseBinding, Links, Result, Spec
from crossdock.model.policies import Disposition, Policy
from crossdock.model.states import State

DAY: Final = 86_400
EXHAUSTED: Final = {Disposition.GONE: State.GONE, Disposition.DEAD: State.DEAD, Disposition.FAILED: State.FAILED}
ENDED: Final = (State.COMPLETE, State.FAILED, State.DEAD)
AT_REST: Final = (State.SCHEDULED, State.RETRYING, State.DEAD)

#: Group, message and backtrace of a failure
Said = tuple[str, str, tuple[str, ...]]


@dataclass
class Lease:
    token: int
    via: str
    worker: str
    at: float
    began: float  #: steady, as the end
    end: float
    wait_s: float
    bound: LeaseBinding
    slot_over: bool = False  #: it was told that it counts for its throttle no longer


@dataclass
class Error:
    group: str
    message: str
    backtrace: tuple[str, ...]
    first_at: float
    at: float
    next_at: float
    lost: bool


@dataclass
class Job:
    number: int
    spec: Spec
    origin: str
    state: State
    created: float
    since: float  #: wall; when it last became ready
    due: float
    failures: int
    band: int = 1
    stamp: float | None = None  #: its place among the ready of its priority and band; kept while leased
    attempts: int = 0
    lease: Lease | None = None
    error: Error | None = None
    depends_on: list[int] = field(default_factory=list)
    deadqueue: str = ""
    spent: bool = False  #: it went there
    end: float = 0.0  #: steady; gone then, 0: never
    result: Result | None = None
    waits: float = 0.0  #: steady; until then it is retrying, or dead

    @property
    def policy(self) -> Policy:
        return self.spec.policy

    @property
    def queue(self) -> str:
        return self.spec.queue

    @property
    def links(self) -> Links:
        return (self.spec.extra and self.spec.extra.links) or Links()


@dataclass
class Queue:
    first_seen: float
    paused: bool = False


def used_up(job: Job) -> bool:
    return 0 < job.policy.max_attempts <= job.attempts


def next_time(job: Job) -> float:
    """When time acts on it: leased, retrying and dead ones by the steady clock, others by the wall's."""
    if job.lease:
        return job.lease.end
    return job.waits if job.state in (State.RETRYING, State.DEAD) else job.due


def is_over(job: Job, now: Now, purge: float) -> bool:
    """It must not be leased any more."""
    by_both = 0 < job.links.expires <= now.wall and job.links.expires_steady <= now.steady
    return by_both or 0 < job.end <= purge
