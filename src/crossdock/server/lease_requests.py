"""The record of requests for jobs: when each queue was last asked for, and by which workers.

A worker asks for the same queues again and again. So a request is only appended to a list, and the list is sorted by
queue and worker when it is long or the record is read.
"""

from collections.abc import Callable, Mapping, Sized
from operator import attrgetter, itemgetter
from typing import Any, Final

from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseNext
from crossdock.model.commands.qless import Pop
from crossdock.model.commands.resqu import TakeNext

#: Commands that ask for a job.
ASKING: Final = (LeaseNext, Pop, TakeNext)

#: Queues of a worker's last request that are kept.
QUEUES_AT_MOST: Final = 20

#: Queues and workers that are kept. Clients choose the names. With more, the half that asked longest ago is forgotten.
NAMES_AT_MOST: Final = 20_000

#: Requests in a list. It gets longer by the requests of one commit.
_RECENT_AT_MOST: Final = 256

_ASKER: Final = attrgetter("worker", "queues")
_STEADY: Final = attrgetter("steady")


class LeaseRequests:
    __slots__ = ("_by_queue", "_by_worker", "_recent", "_waiting", "note", "started")

    def __init__(self, waiting: Mapping[Any, Sized], steady: float) -> None:
        self._waiting = waiting  #: by queue: the requests that wait
        self.started = steady
        self._recent: list[tuple[Any, Now]] = []
        #: Takes a command of `ASKING` and its time. A method would cost another call for each request.
        self.note: Callable[[tuple[Any, Now]], None] = self._recent.append
        self._by_queue: dict[str, float] = {}
        self._by_worker: dict[str, tuple[float, tuple[str, ...]]] = {}

    def sort_if_many(self) -> None:
        """Called with each commit."""
        if len(self._recent) >= _RECENT_AT_MOST:
            self._sort()

    def _sort(self) -> None:
        by_queue, by_worker, recent = self._by_queue, self._by_worker, self._recent
        # The last time of each worker with the same queues. The loops run in C.
        askers = map(_ASKER, map(itemgetter(0), recent))
        last = dict(zip(askers, map(_STEADY, map(itemgetter(1), recent)), strict=True))
        for (worker, queues), at in last.items():
            for queue in queues:
                if by_queue.get(queue, at) <= at:
                    by_queue[queue] = at
            if worker:
                before = by_worker.get(worker)
                if before is None or before[0] <= at:
                    by_worker[worker] = at, queues[:QUEUES_AT_MOST]
        self._recent.clear()
        if len(by_queue) > NAMES_AT_MOST:
            self._by_queue = dict(sorted(by_queue.items(), key=lambda each: each[1])[-NAMES_AT_MOST // 2 :])
        if len(by_worker) > NAMES_AT_MOST:
            self._by_worker = dict(sorted(by_worker.items(), key=lambda each: each[1][0])[-NAMES_AT_MOST // 2 :])

    def asked_at(self, queue: str) -> float | None:
        self._sort()
        return self._by_queue.get(queue)

    def askers(self, queue: str) -> int:
        return len(self._waiting.get(queue, ()))

    def last_asked(self, worker: str) -> tuple[str, ...]:
        self._sort()
        found = self._by_worker.get(worker)
        return found[1] if found is not None else ()
