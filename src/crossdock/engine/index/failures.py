"""Index of failed and dead jobs of every protocol, by the group of their last error."""

from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import listed_in
from crossdock.model.job import Job, Number
from crossdock.model.policies import DEAD_FOR


def key(job: Job) -> tuple[float, Number]:
    """The newest first. A job that was killed may have no error."""
    error = job.extra.error if job.extra is not None else None
    return -(job.due - DEAD_FOR if error is None else error.at), job.number


class FailureIndex:
    __slots__ = ("groups",)

    def __init__(self) -> None:
        self.groups: dict[str, SortedList[tuple[float, Number]]] = {}  #: minus the time, number

    def add(self, job: Job) -> None:
        entry(self.groups, listed_in(job)).add(key(job))

    def take(self, job: Job) -> None:
        group = listed_in(job)
        order = self.groups[group]
        order.take(key(job))
        if not order:
            del self.groups[group]
