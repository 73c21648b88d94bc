"""Commands that change jobs and queues from outside: an operator's, and Faktory's MUTATE, QUEUE and FLUSH."""

from collections.abc import Sequence

from crossdock.model.commands.core import Command
from crossdock.model.job import Number
from crossdock.model.states import State


class Requeue(Command[int], frozen=True, gc=False):
    """Make these scheduled, retrying or dead jobs ready now. Outcome: how many became ready."""

    via: str
    numbers: Sequence[Number]


class Bury(Command[int], frozen=True, gc=False):
    """Move those of these jobs that wait or are dead to the dead jobs. Outcome: how many were moved."""

    via: str
    numbers: Sequence[Number]


class Reroute(Command[int], frozen=True, gc=False):
    """Move those of these jobs that wait to another queue, otherwise unchanged. Outcome: how many were moved."""

    via: str
    queue: str
    numbers: Sequence[Number]


class Remove(Command[int], frozen=True, gc=False):
    """Remove jobs that are in one of `states`. The lease of a leased job ends. Outcome: how many were removed."""

    via: str
    why: str
    numbers: Sequence[Number]
    states: frozenset[State]
    reason: str = ""  #: as the client gave it


class ForgetProgress(Command[None], frozen=True, gc=False):
    """Forget what is stored about the progress of jobs with these jids. Always makes an event, so that the journal gets
    an entry."""

    jids: Sequence[str]


class PauseQueues(Command[None], frozen=True, gc=False):
    """Pause those of these queues that are known. None: all queues."""

    queues: Sequence[str] | None
    any_name: bool = False  #: also pause queues that no request has used yet
    reason: str = ""
    user: str = ""


class ResumeQueues(Command[None], frozen=True, gc=False):
    queues: Sequence[str] | None


class ForgetQueue(Command[None], frozen=True, gc=False):
    """Forget the name of a queue and its pause. A queue that has ready jobs stays known."""

    queue: str
    unlist: bool = False  #: only take it off the list; its jobs and its pause stay


class Flush(Command[None], frozen=True, gc=False):
    via: str


class Audit(Command[None], frozen=True, gc=False):
    """Add an action of an operator to the audit trail."""

    user: str
    address: str
    via: str
    action: str
    target: str
    count: int
    continues: bool = False  #: it may be a further part of the newest entry
