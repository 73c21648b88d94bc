"""The record of requests for jobs: when each queue was last asked for, and by which workers.

A worker asks for the same queues again and again. So a request costs one entry in a small dict, and the entries are
sorted by queue and worker only when the dict is full or the record is read.
"""

from collections.abc import Mapping, Sized
from typing import Any, Final

from crossdock.model.commands.core import LeaseLane, LeaseNext
from crossdock.model.commands.qless import Pop
from crossdock.model.commands.resqu import TakeNext

#: Commands that ask for a job.
ASKING: Final = frozenset({LeaseNext, LeaseLane, Pop, TakeNext})

#: Queues of a worker's last request that are kept.
QUEUES_AT_MOST: Final = 20

#: Queues and workers that are kept. Clients choose the names. With more, the half that asked longest ago is forgotten.
NAMES_AT_MOST: Final = 20_000

_RECENT_AT_MOST: Final = 256


class LeaseRequests:
    __slots__ = ("_by_queue", "_by_worker", "_recent", "_waiting", "started")

    def __init__(self, waiting: Mapping[Any, Sized], steady: float) -> None:
        self._waiting = waiting  #: by queue: the requests that wait
        self.started = steady
        self._recent: dict[tuple[str, tuple[str, ...]], float] = {}  #: by worker and queues
        self._by_queue: dict[str, float] = {}
        self._by_worker: dict[str, tuple[float, tuple[str, ...]]] = {}

    def note(self, command: Any, steady: float) -> None:
        """A command of `ASKING`."""
        kind = type(command)
        if kind is LeaseNext or kind is LeaseLane:
            self._recent[command.worker, tuple(command.queues)] = steady
        else:
            worker = command.worker if kind is Pop else ""
            self._recent[worker, (command.queue,)] = steady
        if len(self._recent) >= _RECENT_AT_MOST:
            self._sort()

    def _sort(self) -> None:
        by_queue, by_worker = self._by_queue, self._by_worker
        for (worker, queues), at in self._recent.items():
            for queue in queues:
                if by_queue.get(queue, at) <= at:
                    by_queue[queue] = at
            if worker:
                last = by_worker.get(worker)
                if last is None or last[0] <= at:
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
