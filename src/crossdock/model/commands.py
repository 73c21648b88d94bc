"""Commands: the verbs every door's requests come down to (MODEL section 1).

`Command[T]` names the type of its outcome, so `desk.do(command)` is typed without a cast. Commands name jobs by jid
where a client does and by number where the server already looked them up.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from crossdock.model.job import Bound, Held, Job, Number, Spec
from crossdock.model.states import State

T = TypeVar("T", covariant=True)


class Command(msgspec.Struct, Generic[T], frozen=True, gc=False):
    pass


class Enqueue(Command[Sequence[str | None]], frozen=True, gc=False):
    """Outcome: an error text per spec, None where it went in; the empty sequence when all did."""

    via: str
    specs: list[Spec]


class Terms(msgspec.Struct, frozen=True, gc=False):
    """A door's terms of leasing (MODEL section 6): its default and the range it allows a job's own `lease_s`."""

    default_s: float
    least_s: float
    most_s: float
    bound: Bound = Bound.NOBODY
    registers: bool = False  #: naming a queue makes it known (Workq)


class LeaseNext(Command[Job | None], frozen=True, gc=False):
    """Lease the next job of the first named queue that has one. Outcome: that job, its lease on it."""

    via: str
    queues: Sequence[str]
    worker: str
    terms: Terms


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Who asks to settle, and what lease it was given for that jid (None: none that it remembers)."""

    via: str
    worker: str
    held: Held | None = None


class Succeed(Command[bool], frozen=True, gc=False):
    """Outcome: False when this claim holds no lease on that job; nothing changed then."""

    jid: str
    claim: Claim


class Fail(Command[bool], frozen=True, gc=False):
    jid: str
    claim: Claim
    group: str
    message: str
    backtrace: tuple[str, ...] = ()


class GiveBack(Command[None], frozen=True, gc=False):
    """Leases whose holder never heard of them. Those that are over by now are passed over."""

    via: str
    leases: Sequence[Held]


class Requeue(Command[int], frozen=True, gc=False):
    """Make these scheduled, retrying or dead jobs ready now. Outcome: how many were."""

    via: str
    numbers: Sequence[Number]


class Bury(Command[int], frozen=True, gc=False):
    via: str
    numbers: Sequence[Number]


class Remove(Command[int], frozen=True, gc=False):
    """Remove jobs that are in one of `states`. Outcome: how many were."""

    via: str
    why: str
    numbers: Sequence[Number]
    states: frozenset[State]


class PauseQueues(Command[None], frozen=True, gc=False):
    """Pause the known ones among these queues; None: all."""

    queues: Sequence[str] | None


class ResumeQueues(Command[None], frozen=True, gc=False):
    queues: Sequence[str] | None


class ForgetQueue(Command[None], frozen=True, gc=False):
    """Forget the name and its pause. A queue that still has ready jobs stays known."""

    queue: str


class Flush(Command[None], frozen=True, gc=False):
    via: str


class Ticked(msgspec.Struct, gc=False):
    """What fell due: jobs by what became of them, and whether the limit left some."""

    scheduled: int = 0
    retried: int = 0
    lapsed: int = 0
    purged: int = 0
    more: bool = False
    passes: int = 0  #: totals only
    seconds: float = 0.0


class Tick(Command[Ticked], frozen=True, gc=False):
    """Carry out what is due, at most `limit` jobs."""

    limit: int


class Start(Command[None], frozen=True, gc=False):
    """The first command after recovery."""
