"""Lists that a job is still in though it is something else by now.

A script that makes a recurring job's next one overwrites whatever has that name, and forgets to take it out of the
failed and the completed. qless' own lists show it there; to everybody else it is what it is.
"""

from collections.abc import Callable
from typing import TypeAlias

from crossdock.engine.order import Order
from crossdock.engine.standing import face_of, group_of
from crossdock.model.job import Job, Number
from crossdock.model.states import State

#: Group and order of a failure, or when it was complete; and whose.
Failed: TypeAlias = tuple[str, int, Number]
Done: TypeAlias = tuple[float, str, Number]

#: Jobs that are remembered so: they are few, and looked through one by one.
AT_MOST = 1_000


class Stale:
    __slots__ = ("done", "failed", "jobs")

    def __init__(self) -> None:
        self.failed: Order[Failed] = Order()
        self.done: Order[Done] = Order()
        self.jobs: dict[Number, set[Failed | Done]] = {}

    def leave(self, job: Job) -> None:
        """It is overwritten where it stands."""
        face = face_of(job)
        if face is None or len(self.jobs) >= AT_MOST:
            return
        if job.state is State.FAILED:
            self.restore(failed=[(group_of(job), face.order, job.number)])
        elif job.state is State.COMPLETE:
            self.undone(job)
            self.restore(done=[(face.time, job.jid, job.number)])

    def restore(self, failed: "list[Failed] | None" = None, done: "list[Done] | None" = None) -> None:
        for failure in failed or ():
            self.failed.add(failure)
            self.jobs.setdefault(failure[2], set()).add(failure)
        for success in done or ():
            self.done.add(success)
            self.jobs.setdefault(success[2], set()).add(success)

    def unfailed(self, job: Job, group: str) -> None:
        """Its failures of that group are taken out."""
        self._take(job.number, lambda each: each[0] == group)

    def unlist(self, failure: Failed) -> None:
        self._take(failure[2], lambda each: each == failure)

    def undone(self, job: Job) -> None:
        """It is complete anew, or no longer."""
        self._take(job.number, lambda each: isinstance(each[0], float))

    def forget(self, number: Number) -> None:
        self._take(number, lambda each: True)

    def _take(self, number: Number, which: "Callable[[Failed | Done], bool]") -> None:
        left: set[Failed | Done] = set()
        for each in self.jobs.pop(number, ()):
            if not which(each):
                left.add(each)
            elif isinstance(each[0], str):
                self.failed.take((each[0], int(each[1]), each[2]))
            else:
                self.done.take((each[0], str(each[1]), each[2]))
        if left:
            self.jobs[number] = left
