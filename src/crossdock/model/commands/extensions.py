"""Commands of the extensions of the Faktory protocol (faktory-extensions.md)."""

from collections.abc import Sequence

import msgspec

from crossdock.model.commands.core import Claim, Command, Enqueue, Verdict
from crossdock.model.records import Schedule


class EnqueueOnce(Enqueue, frozen=True, gc=False):
    """Enqueue jobs whose jid is neither live nor remembered, and remember their jids. Others are refused as
    duplicates.
    """


class ConfigureOnce(Command[None], frozen=True, gc=False):
    """Set how long jids of pushes with `once` are remembered, and how many."""

    keep_s: float
    at_most: int


class LeaseClaim(msgspec.Struct, frozen=True, gc=False):
    """The lease that a worker believes to hold. Only a lease that it was given, or one under its name, counts."""

    jid: str
    claim: Claim


class ExtendLeases(Command[list[str]], frozen=True, gc=False):
    """Let leases last at least this many seconds from now. Outcome: the jids whose lease has ended."""

    leases: Sequence[LeaseClaim]
    lease_s: float


class Snooze(Command[Verdict], frozen=True, gc=False):
    """End a lease without a failure, and schedule the job again."""

    jid: str
    claim: Claim
    delay_s: float
    reason: str = ""


class SetAppSchedules(Command[None], frozen=True, gc=False):
    """Replace the schedules of an app. One whose times did not change keeps its next run."""

    app: str
    schedules: Sequence[Schedule]  #: `next` is not read
