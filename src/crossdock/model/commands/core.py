"""Commands: every request of every protocol is translated to these (model.md section 1).

`Command[T]` names the type of its outcome, so `dispatcher.do(command)` is typed without a cast. Commands name jobs by
jid where a client does, and by number where the server has already found the job.
"""

from collections.abc import Sequence
from enum import IntEnum
from math import inf
from typing import Generic, NamedTuple, TypeVar

import msgspec

from crossdock.model.job import Job, LeaseBinding, LeaseRef, Number, Spec
from crossdock.model.protocol_data import QlessDialect
from crossdock.model.records import Per, RateSpec, Schedule

T = TypeVar("T", covariant=True)


class Command(msgspec.Struct, Generic[T], frozen=True, gc=False):
    def caller_time(self) -> float | None:
        """The time on the caller's own clock. The consequences of the command have the same time."""
        return None

    def spares(self) -> frozenset[Number]:
        """Jobs that do not fail if the command removes a job that they depend on."""
        return frozenset()

    def frees_first(self) -> bool:
        """Whether dependents that become ready stand before others of their priority."""
        return False


class Refused(IntEnum):
    """Why a job was not enqueued."""

    NOT_UNIQUE = 1  #: another job holds its lock
    NO_BATCH = 2  #: it names a batch that does not exist
    DUPLICATE = 3  #: a job of that jid is alive


class Enqueue(Command[Sequence[Refused | None]], frozen=True, gc=False):
    """Outcome: for each spec the reason why it was refused, None if it was enqueued. Empty if all were enqueued."""

    via: str
    specs: list[Spec]
    unless_live: bool = False  #: refuse a jid that is alive, whatever protocol pushed it


class LeaseTerms(msgspec.Struct, frozen=True, gc=False):
    """The lease terms of a protocol: the default, and the range for a job's own `lease_s` (model.md section 6)."""

    default_s: float
    least_s: float
    most_s: float
    bound: LeaseBinding = LeaseBinding.UNBOUND
    registers: bool = False  #: naming a queue registers it (Workq)


class LeaseNext(Command[Job | None], frozen=True, gc=False):
    """Lease the next job of the first named queue that has one. Outcome: the job with its lease.

    Expired jobs are removed on the way, a limited number per call. If the outcome is None, `more_candidates` tells
    whether to call again.
    """

    via: str
    queues: tuple[str, ...]
    worker: str
    terms: LeaseTerms
    at_random: bool = False  #: choose among the queues that have a job, each with the same probability


class LeaseLane(LeaseNext, frozen=True, gc=False):
    """The same for one lane of the queue: the jobs of one batch."""

    lane: str = ""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The worker that settles a job, and the lease it was given for that jid. `held` is None if it knows of none."""

    via: str
    worker: str
    held: LeaseRef | None = None
    #: settle without a lease, unless another protocol holds the job (Workq, only for jobs that Workq pushed)
    free: bool = False
    number: Number = 0  #: the number of the job, for protocols that show no jid


class Verdict(IntEnum):
    UNKNOWN = 0  #: no such job, or none that this claim may settle; nothing changed
    DONE = 1
    FINISHED = 2  #: the job is complete or failed already; only a claim with `free` gets this


class Succeed(Command[Verdict], frozen=True, gc=False):
    jid: str
    claim: Claim
    result: bytes = b""
    t: float | None = None
    payload: bytes | None = None  #: replaces the payload of the job
    qless: QlessDialect | None = None

    def caller_time(self) -> float | None:
        return self.t

    def frees_first(self) -> bool:
        return self.qless is not None and self.qless.oldest


class Fail(Command[Verdict], frozen=True, gc=False):
    """A failure. Unless it is `final`, the policy of the job decides what follows."""

    jid: str
    claim: Claim
    group: str
    message: str
    backtrace: tuple[str, ...] = ()
    result: bytes = b""  #: kept if the failure ends the job and its policy keeps results
    t: float | None = None
    payload: bytes | None = None  #: replaces the payload of the job
    final: bool = False  #: the job is not tried again, and this failure is not counted unless `counts`
    delay: float | None = None  #: seconds until the next try, in place of the backoff; 0 or less: ready at once
    qless: QlessDialect | None = None
    counts: bool = False  #: a final failure is counted, too

    def caller_time(self) -> float | None:
        return self.t


class Transacted(msgspec.Struct, frozen=True, gc=False):
    numbers: list[Number]  #: of the new jobs, in order
    #: index of the first step that is not possible. Then nothing was changed, but the numbers before it are used up
    refused: int = -1


class Transaction(Command[Transacted], frozen=True, gc=False):
    """Steps that are done all together or not at all. A pushed job may depend on jobs of earlier steps
    (`Links.depends_on`).
    """

    via: str
    steps: Sequence[Spec | Succeed]


class DrawNumbers(Command[None], frozen=True, gc=False):
    """Use up job numbers without jobs: the jobs were refused after their numbers were given out (masenko.md section
    3.2).
    """

    count: int


class GiveBack(Command[None], frozen=True, gc=False):
    """Give back leases that their holders never received. Leases that have ended are left out."""

    via: str
    leases: Sequence[LeaseRef]


class LoseLease(Command[None], frozen=True, gc=False):
    """Expire a lease whose holder is gone, unless it has ended."""

    via: str
    lease: LeaseRef


class OpenBatch(Command[bool], frozen=True, gc=False):
    """Open a batch. Outcome: False if the parent does not exist or the name is taken."""

    name: str
    via: str
    parent: str
    description: str
    complete: Spec | None
    success: Spec | None


class CommitBatch(Command[bool], frozen=True, gc=False):
    """Commit a batch: all its members are pushed, and callbacks may follow. Outcome: False if there is none."""

    name: str


class FollowUp(NamedTuple):
    """What a change affected, so that more may follow: a batch, progress, a throttle, completed jobs to retire, a lock
    that was freed while a job is deferred under it, or dependents.
    """

    batch: str = ""
    progress: str = ""
    retire: float | None = None  #: retire completed jobs up to this time, by callers' clocks
    throttle: str = ""  #: it may have room
    lock: str = ""
    held: int = 0  #: how many jobs held the throttle then
    #: the job that stopped waiting for the throttle: since when it waited, and its jid
    left: tuple[float, str] | None = None
    own: bool = False  #: `retire` is by the server's wall clock, which may be wrong
    dependents: Sequence[tuple[Number, bool]] = ()  #: as in `Resolve`
    outcome: str = ""  #: the jid of an outcome that was written


class Follow(Command[None], frozen=True, gc=False):
    """Decide what the last changes mean for batches, progress and throttles. Only `Engine.execute` uses it."""

    follow_ups: Sequence[FollowUp]
    t: float | None = None

    def caller_time(self) -> float | None:
        return self.t


class Resolve(Command[None], frozen=True, gc=False):
    """Decide what the last changes mean for dependents. Only `Engine.execute` uses it."""

    #: True: it depends on nothing any more; False: a dependency can never succeed
    dependents: Sequence[tuple[Number, bool]]
    t: float | None = None
    spared: frozenset[Number] = frozenset()  #: jobs that are about to be removed
    first: bool = False  #: dependents that become ready stand before others of their priority


class ResolveDependents(Command[int], frozen=True, gc=False):
    """Resolve some of the dependents that were postponed, at most `limit`. Outcome: how many were looked at."""

    limit: int


class SetProgress(Command[None], frozen=True, gc=False):
    """Report the progress of a job. `until` (wall) extends its lease if the lease would end before that."""

    jid: str
    percent: int | None
    text: str | None
    until: float = 0.0


class SetThrottles(Command[None], frozen=True, gc=False):
    """Replace the configured throttles. Current leases count from the start."""

    throttles: Sequence[tuple[str, int, Per, float]]  #: queue, maximum, per queue or worker, timeout


class SetRates(Command[None], frozen=True, gc=False):
    """Replace the rate limits of one source. A limit of the same name for the same jobs keeps its tokens."""

    source: str  #: as `Rate.source`
    rates: Sequence[RateSpec]


class SetSchedules(Command[None], frozen=True, gc=False):
    """Replace the configured schedules. One whose times did not change keeps its next run."""

    schedules: Sequence[Schedule]  #: `next` is not read


class Ticked(msgspec.Struct, gc=False):
    """What a tick did: jobs by what became of them, and whether the limit left some."""

    scheduled: int = 0
    retried: int = 0
    expired: int = 0  #: leases
    purged: int = 0
    spawned: int = 0
    more: bool = False
    passes: int = 0  #: only in totals
    seconds: float = 0.0
    ended: int = 0  #: jobs whose time to live was over


class Tick(Command[Ticked], frozen=True, gc=False):
    """Do what is due, for at most `limit` jobs."""

    limit: int
    room: float = inf  #: how many more jobs the server may hold; a run of a client's plan beyond it is left out
    looked: float = -inf  #: steady; at that time nothing was due that is due now


class Start(Command[None], frozen=True, gc=False):
    """The first command after recovery."""

    boot: str = ""  #: the kernel's boot id
    offset: float = 0.0  #: steady time is CLOCK_BOOTTIME plus this
    hold_at: float | None = None  #: steady; the wall clock is in doubt, and purges use this time for an hour
