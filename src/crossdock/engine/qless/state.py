"""The state that the engine keeps for qless beside the jobs. Only apply functions may write to it.

`StrayEntries` and `StaleListings` record entries that a script leaves in lists a job is no longer in (qless.md section
14). They are bugs of the scripts, so they are few. Only qless's own lists, counts and pops see them; every other
protocol sees the job in its real state.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from crossdock.engine.index.sorted_list import SortedList, entry
from crossdock.engine.job_view import group_of, qless_data
from crossdock.model.job import Job, Number, SortKey
from crossdock.model.records import Interval
from crossdock.model.states import State

ByCaller: TypeAlias = tuple[float, str, Number]  #: time by callers' clocks, jid, number
FailedListing: TypeAlias = tuple[str, int, Number]  #: failure group, order within it, number
CompletedListing: TypeAlias = tuple[float, str, Number]  #: completion time, jid, number

#: Limit of jobs with stray entries, and of jobs with stale listings. They are searched one by one. Beyond the limit, a
#: job is listed only where it really is.
_MAX_JOBS = 1_000


class StrayEntries:
    """Entries in the lists of a queue whose job is elsewhere. A pop that reaches one moves the job back (`surfacing`).

    They have three causes: a completion in an old dialect that names another queue leaves the lock in the job's own
    queue; a reqless throttle frees a job that was put elsewhere in the meantime; a recurring job that is set again
    spawns a job under a jid that it has used before.
    """

    __slots__ = ("depends", "jobs", "locks", "work")

    def __init__(self) -> None:
        self.locks: dict[str, SortedList[ByCaller]] = {}  #: by queue: expiry, jid, number
        self.work: dict[str, SortedList[SortKey]] = {}
        self.depends: dict[str, SortedList[ByCaller]] = {}
        self.jobs: dict[Number, None] = {}  #: jobs with at least one entry

    def add(
        self,
        locks: Iterable[tuple[str, ByCaller]] = (),
        work: Iterable[tuple[str, SortKey]] = (),
        depends: Iterable[tuple[str, ByCaller]] = (),
    ) -> None:
        for lists, entries in ((self.locks, locks), (self.depends, depends)):
            for queue, key in entries:
                if self._is_over_limit(key[2]):
                    continue
                self._remove(lists, queue, key[2])
                entry(lists, queue).add(key)
                self.jobs[key[2]] = None
        for queue, sort_key in work:
            if self._is_over_limit(sort_key[4]):
                continue
            self._remove(self.work, queue, sort_key[4])
            entry(self.work, queue).add(sort_key)
            self.jobs[sort_key[4]] = None

    def _is_over_limit(self, number: Number) -> bool:
        return number not in self.jobs and len(self.jobs) >= _MAX_JOBS

    def out_of(self, number: Number, queue: str) -> None:
        """Removes the job's entries in a queue that a script removes it from."""
        if number in self.jobs:
            self._remove(self.depends, queue, number)
            self.popped(number, queue)

    def popped(self, number: Number, queue: str) -> None:
        """Removes the job's entries in the queue it is leased from."""
        if number in self.jobs:
            self._remove(self.locks, queue, number)
            self._remove(self.work, queue, number)
            self._tidy(number)

    def ready(self, number: Number, queue: str) -> None:
        """Removes the work entry in the queue where the job is ready: its real entry replaces it."""
        if number in self.jobs:
            self._remove(self.work, queue, number)
            self._tidy(number)

    def forget(self, number: Number) -> None:
        """Removes all entries of a job."""
        if number in self.jobs:
            for lists in (self.locks, self.work, self.depends):
                for queue in list(lists):
                    self._remove(lists, queue, number)
            del self.jobs[number]

    def _remove(
        self, lists: "dict[str, SortedList[ByCaller]] | dict[str, SortedList[SortKey]]", queue: str, number: Number
    ) -> None:
        found: Any = lists.get(queue)
        if found is None:
            return
        for key in [key for key in found if key[-1] == number]:
            found.take(key)
        if not found:
            del lists[queue]

    def _tidy(self, number: Number) -> None:
        """Forgets a job that has no entries left."""
        lists: list[Any] = [*self.locks.values(), *self.work.values(), *self.depends.values()]
        if not any(key[-1] == number for found in lists for key in found):
            self.jobs.pop(number, None)

    def expired(self, queue: str, t: float) -> list[ByCaller]:
        """The stray locks of a queue that have expired at `t`."""
        return [lock for lock in self.locks.get(queue, ()) if lock[0] <= t]


class StaleListings:
    """Listings of jobs as failed or complete that are neither any more.

    A script that creates the next job of a recurring job overwrites any job that has its jid, and does not remove it
    from the failed and completed lists.
    """

    __slots__ = ("done", "failed", "jobs")

    def __init__(self) -> None:
        self.failed: SortedList[FailedListing] = SortedList()
        self.done: SortedList[CompletedListing] = SortedList()
        self.jobs: dict[Number, set[FailedListing | CompletedListing]] = {}

    def leave(self, job: Job) -> None:
        """Records the listing of a job that is about to be overwritten."""
        protocol_data = qless_data(job)
        if protocol_data is None or len(self.jobs) >= _MAX_JOBS:
            return
        if job.state is State.FAILED:
            self.restore(failed=[(group_of(job), protocol_data.order, job.number)])
        elif job.state is State.COMPLETE:
            self.undone(job)
            self.restore(done=[(protocol_data.time, job.jid, job.number)])

    def restore(self, failed: list[FailedListing] | None = None, done: list[CompletedListing] | None = None) -> None:
        for failure in failed or ():
            self.failed.add(failure)
            self.jobs.setdefault(failure[2], set()).add(failure)
        for success in done or ():
            self.done.add(success)
            self.jobs.setdefault(success[2], set()).add(success)

    def unfailed(self, job: Job, group: str) -> None:
        """Removes the job's listings in a failure group."""
        self._remove(job.number, lambda listing: listing[0] == group)

    def unlist(self, failure: FailedListing) -> None:
        self._remove(failure[2], lambda listing: listing == failure)

    def undone(self, job: Job) -> None:
        """Removes the listing of a job that becomes complete again, or stops being complete."""
        self._remove(job.number, lambda listing: isinstance(listing[0], float))

    def forget(self, number: Number) -> None:
        """Removes all listings of a job."""
        self._remove(number, lambda listing: True)

    def _remove(self, number: Number, matches: Callable[[FailedListing | CompletedListing], bool]) -> None:
        left: set[FailedListing | CompletedListing] = set()
        for listing in self.jobs.pop(number, ()):
            if not matches(listing):
                left.add(listing)
            elif isinstance(listing[0], str):
                self.failed.take((listing[0], int(listing[1]), listing[2]))
            else:
                self.done.take((listing[0], str(listing[1]), listing[2]))
        if left:
            self.jobs[number] = left


class QlessState:
    __slots__ = ("completed", "config", "failed_in", "intervals", "stale_listings", "stray_entries", "watched")

    def __init__(self) -> None:
        self.completed: SortedList[ByCaller] = SortedList()  #: completed jobs
        self.failed_in: dict[str, SortedList[tuple[int, Number]]] = {}  #: failed jobs by group
        self.stale_listings = StaleListings()
        self.stray_entries = StrayEntries()
        self.watched: dict[str, float] = {}  #: tracked jids, whether their job exists or not, and since when
        self.config: dict[str, str] = {}  #: settings that callers made
        self.intervals: dict[str, Interval] = {}  #: recurring jobs by jid
