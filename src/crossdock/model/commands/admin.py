"""What somebody does to jobs and queues from outside: an operator, Faktory's MUTATE, QUEUE and FLUSH."""

from collections.abc import Sequence

from crossdock.model.commands.core import Command
from crossdock.model.job import Number
from crossdock.model.states import State


class Requeue(Command[int], frozen=True, gc=False):
    """Make these scheduled, retrying or dead jobs ready now. Outcome: how many were."""

    via: str
    numbers: Sequence[Number]


class Bury(Command[int], frozen=True, gc=False):
    """Move these jobs, those that wait and those that are dead, to the dead. Outcome: how many were."""

    via: str
    numbers: Sequence[Number]


class Reroute(Command[int], frozen=True, gc=False):
    """Take these jobs, those that wait, to that queue as they are. Outcome: how many were not there yet and are."""

    via: str
    queue: str
    numbers: Sequence[Number]


class Remove(Command[int], frozen=True, gc=False):
    """Remove jobs that are in one of `states`; a leased one takes its lease along. Outcome: how many were."""

    via: str
    why: str
    numbers: Sequence[Number]
    states: frozenset[State]


class PauseQueues(Command[None], frozen=True, gc=False):
    """Pause the known ones among these queues; None: all."""

    queues: Sequence[str] | None
    any_name: bool = False  #: those that nobody has used yet, too


class ResumeQueues(Command[None], frozen=True, gc=False):
    queues: Sequence[str] | None


class ForgetQueue(Command[None], frozen=True, gc=False):
    """Forget the name and its pause. A queue that still has ready jobs stays known."""

    queue: str
    unlist: bool = False  #: take it off the list only; its jobs and its pause stay


class Flush(Command[None], frozen=True, gc=False):
    via: str
