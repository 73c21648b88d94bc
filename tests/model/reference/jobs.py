"""The reference's job, lease, error and queue, and the states in which a job has ended."""

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

#: A failure report: group, message and backtrace
Report = tuple[str, str, tuple[str, ...]]


@dataclass
class Lease:
    token: int
    via: str
    worker: str
    at: float
    began: float  #: steady, like `end`
    end: float
    wait_s: float
    bound: LeaseBinding
    slot_over: bool = False  #: it no longer counts for its throttle


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
    stamp: float | None = None  #: sort key within its priority and band; kept while leased
    attempts: int = 0
    lease: Lease | None = None
    error: Error | None = None
    depends_on: list[int] = field(default_factory=list)
    deadqueue: str = ""
    spent: bool = False  #: it was moved to the dead queue
    end: float = 0.0  #: steady end of its time to live; 0: none
    result: Result | None = None
    waits: float = 0.0  #: steady end of a retry delay or of the time as a dead job

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
    """When a tick changes the job: by the steady clock if it is leased, retrying or dead, else by the wall clock."""
    if job.lease:
        return job.lease.end
    return job.waits if job.state in (State.RETRYING, State.DEAD) else job.due


def is_over(job: Job, now: Now, purge: float) -> bool:
    """Whether the job has expired and must not be leased."""
    by_both = 0 < job.links.expires <= now.wall and job.links.expires_steady <= now.steady
    return by_both or 0 < job.end <= purge
