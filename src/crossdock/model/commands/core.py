"""Commands: the verbs every door's requests come down to (MODEL section 1).

`Command[T]` names the type of its outcome, so `desk.do(command)` is typed without a cast. Commands name jobs by jid
where a client does and by number where the server already looked them up.
"""

from collections.abc import Sequence
from enum import IntEnum
from math import inf
from typing import Generic, NamedTuple, TypeVar

import msgspec

from crossdock.model.commands.qless_settle import QlessFailure, QlessSuccess
from crossdock.model.job import Job, LeaseBinding, LeaseRef, Number, Spec
from crossdock.model.records import Per, Schedule

T = TypeVar("T", covariant=True)


class Command(msgspec.Struct, Generic[T], frozen=True, gc=False):
    def caller_time(self) -> float | None:
        """The time by the caller's own clock. What follows from the command has the same time."""
        return None

    def spares(self) -> frozenset[Number]:
        """Jobs that do not fail if the command removes one that they depend on."""
        return frozenset()

    def frees_first(self) -> bool:
        """Dependents that become ready stand before others of their priority."""
        return False


class Refused(IntEnum):
    """Why a job was not taken in."""

    NOT_UNIQUE = 1  #: another job holds its lock
    NO_GROUP = 2  #: it is to be a member of a group that does not exist
    DUPLICATE = 3  #: a job of that jid is alive


class Enqueue(Command[Sequence[Refused | None]], frozen=True, gc=False):
    """Outcome: for each spec why it was refused, None where it went in; the empty sequence when all did."""

    via: str
    specs: list[Spec]
    unless_live: bool = False  #: a jid that is alive, of whatever door, is refused


class LeaseTerms(msgspec.Struct, frozen=True, gc=False):
    """A door's terms of leasing (MODEL section 6): its default and the range it allows a job's own `lease_s`."""

    default_s: float
    least_s: float
    most_s: float
    bound: LeaseBinding = LeaseBinding.NOBODY
    registers: bool = False  #: naming a queue makes it known (Workq)


class LeaseNext(Command[Job | None], frozen=True, gc=False):
    """Lease the next job of the first named queue that has one. Outcome: that job, its lease on it.

    Expired jobs are removed on the way, a limited number of them: whoever got None asks `row_goes_on`.
    """

    via: str
    queues: Sequence[str]
    worker: str
    terms: LeaseTerms
    at_random: bool = False  #: not the first: any of those that have one, each as likely


class LeaseLane(LeaseNext, frozen=True, gc=False):
    """The same, of one lane of the queue: the jobs of a batch."""

    lane: str = ""


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Who asks to settle, and what lease it was given for that jid (None: none that it remembers)."""

    via: str
    worker: str
    held: LeaseRef | None = None
    free: bool = False  #: no lease is needed while no other door holds a job that came by this one (Workq)
    number: Number = 0  #: names the job where the door shows no jid


class Verdict(IntEnum):
    UNKNOWN = 0  #: no such job, or none this claim may settle; nothing changed
    DONE = 1
    FINISHED = 2  #: it is complete or failed already; only a free claim is told


class Succeed(Command[Verdict], frozen=True, gc=False):
    jid: str
    claim: Claim
    result: bytes = b""
    t: float | None = None
    payload: bytes | None = None  #: put in place of what the job has
    qless: QlessSuccess = QlessSuccess()

    def caller_time(self) -> float | None:
        return self.t

    def frees_first(self) -> bool:
        return self.qless.whole


class Fail(Command[Verdict], frozen=True, gc=False):
    """Not final unless it says so: the job's rules say what follows."""

    jid: str
    claim: Claim
    group: str
    message: str
    backtrace: tuple[str, ...] = ()
    result: bytes = b""  #: kept if the failure ends the job and its rules keep it
    t: float | None = None
    payload: bytes | None = None  #: put in place of what the job has
    final: bool = False  #: its tries are over, and this one is not counted
    delay: float | None = None  #: until the next try, in place of the backoff; below or 0: none
    qless: QlessFailure = QlessFailure()

    def caller_time(self) -> float | None:
        return self.t


class Transacted(msgspec.Struct, frozen=True, gc=False):
    numbers: list[Number]  #: of the new jobs, in order
    refused: int = -1  #: the first step that cannot be done; then nothing was, but the numbers before it are used up


class Transaction(Command[Transacted], frozen=True, gc=False):
    """All steps or none, as one change. A step that pushes may need jobs of earlier ones (`Links.depends_on`)."""

    via: str
    steps: Sequence[Spec | Succeed]


class DrawNumbers(Command[None], frozen=True, gc=False):
    """Use up so many job numbers: their jobs were refused too late (Masenko 3.2)."""

    count: int


class GiveBack(Command[None], frozen=True, gc=False):
    """Leases whose holder never heard of them. Those that are over by now are passed over."""

    via: str
    leases: Sequence[LeaseRef]


class LoseLease(Command[None], frozen=True, gc=False):
    """Its holder is gone: to the job this lease has run out, unless it is over by now."""

    via: str
    lease: LeaseRef


class OpenBatch(Command[bool], frozen=True, gc=False):
    """Outcome: False when the parent does not exist, or the name is taken."""

    name: str
    via: str
    parent: str
    description: str
    complete: Spec | None
    success: Spec | None


class CommitBatch(Command[bool], frozen=True, gc=False):
    """All members are pushed; callbacks may follow. Outcome: False when there is no such group."""

    name: str


class FollowUp(NamedTuple):
    """What a change leaves to be looked at: a group, a track, a throttle, what is kept of the successful by then, or a
    lock that was freed while a job is deferred under it."""

    group: str = ""
    track: str = ""
    retire: float | None = None  #: by callers' clocks
    throttle: str = ""  #: it may have room
    lock: str = ""
    held: int = 0  #: so many held the throttle then
    left: tuple[float, str] | None = None  #: since when, and who waited for it up to then
    own: bool = False  #: `retire` is by the server's wall clock, which may be wrong


class Follow(Command[None], frozen=True, gc=False):
    """Decide what the last changes mean for groups, tracks and throttles. `Engine.execute` does it by itself."""

    follow_ups: Sequence[FollowUp]
    t: float | None = None

    def caller_time(self) -> float | None:
        return self.t


class Resolve(Command[None], frozen=True, gc=False):
    """Decide what the last changes mean for jobs that need others. `Engine.execute` does it by itself."""

    resolved_dependents: Sequence[tuple[Number, bool]]  #: True: it needs nothing any more; False: it can never succeed
    t: float | None = None
    spared: frozenset[Number] = frozenset()  #: they are about to be removed
    first: bool = False  #: those that are ready stand before their like, whatever the time


class ResolveDependents(Command[int], frozen=True, gc=False):
    """Resolve some of the dependents that were postponed, at most `limit`. Outcome: how many were looked at."""

    limit: int


class SetProgress(Command[None], frozen=True, gc=False):
    """Say how far a job is; `until` (wall) extends its lease if that is later than the end it has."""

    jid: str
    percent: int | None
    text: str | None
    until: float = 0.0


class SetThrottles(Command[None], frozen=True, gc=False):
    """The throttles of the configuration: these, and no others. Leases held count from the start."""

    throttles: Sequence[tuple[str, int, Per, float]]  #: queue, maximum, per what, timeout


class SetSchedules(Command[None], frozen=True, gc=False):
    """The recurrences of the configuration: these, and no others. One whose times did not change keeps its
    next run."""

    schedules: Sequence[Schedule]  #: `next` is not read


class Ticked(msgspec.Struct, gc=False):
    """What fell due: jobs by what became of them, and whether the limit left some."""

    scheduled: int = 0
    retried: int = 0
    lapsed: int = 0
    purged: int = 0
    spawned: int = 0
    more: bool = False
    passes: int = 0  #: totals only
    seconds: float = 0.0
    ended: int = 0  #: their time to live was over


class Tick(Command[Ticked], frozen=True, gc=False):
    """Carry out what is due, at most `limit` jobs."""

    limit: int
    room: float = inf  #: so many jobs more there may be: a run of a client's plan beyond it is left out
    looked: float = -inf  #: steady; nothing that is due now was due then


class Start(Command[None], frozen=True, gc=False):
    """The first command after recovery."""

    boot: str = ""  #: the kernel's boot id
    offset: float = 0.0  #: steady time is CLOCK_BOOTTIME plus this
    hold_at: float | None = None  #: steady; the wall clock is in doubt: purges go by this time for an hour
