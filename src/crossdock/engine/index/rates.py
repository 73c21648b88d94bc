"""Rate limits by queue and by kind, and what waits for them.

A job that finds a rate limit used up is held (`Extra.held_by`) and keeps its sort key. The limit frees as many jobs in
each queue as it has tokens. A freed job is ready until it is leased, and it counts as freed until then. So a queue
without workers does not use up what the jobs of another queue wait for.
"""

from math import inf

from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.job_view import sort_key_of
from crossdock.model.job import Job, SortKey
from crossdock.model.records import Rate, RateScope
from crossdock.model.states import HELD, READY

_QUEUE = RateScope.QUEUE
_KIND = RateScope.KIND


class RateWait:
    """What waits in one queue for one rate limit."""

    __slots__ = ("freed", "held", "lane", "wake")

    def __init__(self) -> None:
        self.held: SortedList[SortKey] = SortedList()
        self.freed = 0  #: jobs that are ready because the limit freed them
        self.lane = False  #: the next job of a batch waits
        self.wake = inf  #: steady; when the next one can be freed. Infinity: no timer is set


class RateIndex:
    __slots__ = ("by_kind", "by_queue", "names", "rates", "uses", "waits", "wakes")

    def __init__(self, rates: dict[str, Rate]) -> None:
        self.rates = rates
        self.by_queue: dict[str, tuple[Rate, ...]] = {}
        self.by_kind: dict[str, tuple[Rate, ...]] = {}
        #: keys of the limits that jobs carry, in the order in which they are looked at to be forgotten
        self.names: dict[str, None] = {key: None for key, rate in rates.items() if rate.scope is RateScope.NAME}
        self.waits: dict[tuple[str, str], RateWait] = {}  #: by key of the limit, and queue
        self.uses: dict[str, dict[str, None]] = {}  #: by key: the queues that `waits` has
        self.wakes: SortedList[tuple[float, str, str]] = SortedList()  #: steady, key of the limit, queue
        self.refresh()
        self.restore_timers()

    def refresh(self) -> None:
        """The limits of queues and kinds were changed."""
        by_queue: dict[str, tuple[Rate, ...]] = {}
        by_kind: dict[str, tuple[Rate, ...]] = {}
        for rate in self.rates.values():
            if rate.scope is _QUEUE:
                by_queue[rate.target] = (*by_queue.get(rate.target, ()), rate)
            elif rate.scope is _KIND:
                by_kind[rate.target] = (*by_kind.get(rate.target, ()), rate)
        self.by_queue, self.by_kind = by_queue, by_kind

    def in_order(self) -> list[Rate]:
        """All limits, for a snapshot: those that jobs carry come last, in the order of `names`."""
        return [
            *(rate for key, rate in self.rates.items() if key not in self.names),
            *map(self.rates.__getitem__, self.names),
        ]

    # Jobs. `index.placement` calls these.

    def insert(self, job: Job, key: str) -> None:
        if job.state is HELD:
            self.wait(key, job.queue).held.add(sort_key_of(job))
        elif job.state is READY:
            self.wait(key, job.queue).freed += 1
        else:
            return
        self.schedule(key, job.queue)

    def remove(self, job: Job, key: str) -> None:
        if job.state is HELD:
            self.waits[key, job.queue].held.take(sort_key_of(job))
        elif job.state is READY:
            self.waits[key, job.queue].freed -= 1
        else:
            return
        self.schedule(key, job.queue)

    # Waiting.

    def wait(self, key: str, queue: str) -> RateWait:
        wait = self.waits.get((key, queue))
        if wait is None:
            wait = self.waits[key, queue] = RateWait()
            self.uses.setdefault(key, {})[queue] = None
        return wait

    def schedule(self, key: str, queue: str) -> None:
        """Set the timer to the time at which the limit has a token for one more job of that queue. The timer may be
        early, because leases from other queues take tokens too. It is never late.
        """
        wait = self.waits.get((key, queue))
        if wait is None:
            return
        wake = self._wake(self.rates.get(key), wait)
        if wake != wait.wake:
            if wait.wake < inf:
                self.wakes.take((wait.wake, key, queue))
            wait.wake = wake
            if wake < inf:
                self.wakes.add((wake, key, queue))
        if wake == inf and not wait.held and not wait.freed:
            del self.waits[key, queue]
            del self.uses[key][queue]
            if not self.uses[key]:
                del self.uses[key]

    def _wake(self, rate: Rate | None, wait: RateWait) -> float:
        if rate is None:
            return 0.0 if wait.held or wait.lane else inf
        if rate.scope is _QUEUE:
            return rate.when(1.0) if rate.used_up(rate.at) else inf
        if wait.held and wait.freed < rate.count:
            return rate.when(wait.freed + 1.0)
        return rate.when(1.0) if wait.lane else inf

    def restore_timers(self) -> None:
        """Set the timers of queues after a snapshot was loaded or everything was flushed."""
        for rate in self.rates.values():
            if rate.scope is _QUEUE:
                self.wait(rate.key, rate.target)
                self.schedule(rate.key, rate.target)
