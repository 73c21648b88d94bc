"""The state that the engine keeps for Resqu beside the jobs: reserved unique ids, deferred jobs, batches, buffers and
the mapping to pools. Only apply functions may write to it.

The locks of unique ids are in `EngineState.locks`, plans in `EngineState.schedules`.
"""

from collections import Counter, deque
from functools import lru_cache
from typing import Final

from crossdock.engine.index.sorted_list import SortedList
from crossdock.model.commands.resqu import UNASSIGNED, Buffer
from crossdock.model.events.resqu import Pools
from crossdock.model.job import Job, Number, ResquData, Spec
from crossdock.model.records import ResquBatch

_DEFAULT: Final = "default"


class Mapping:
    """Which pool a job or a batch goes to (resqu.md section 10.3): the entry of its source for its name, else the
    default entry for its name, else the default pool."""

    __slots__ = ("batch", "pool", "static")

    #: Size of the cache of pools.
    CACHE_SIZE: Final = 4_096

    def __init__(self, static: Pools | None = None, batch: Pools | None = None) -> None:
        self.static = static or {}
        self.batch = batch or {}
        #: The static pool of a job, by source and name
        self.pool = lru_cache(maxsize=self.CACHE_SIZE)(self._pool)

    def _pool(self, source: str, name: str) -> str:
        return _look_up(self.static, source, name) or UNASSIGNED

    def batch_pool(self, source: str, name: str) -> str:
        """The pool of a batch, by its source and the name of its first job. Empty if an allocator assigns it."""
        return _look_up(self.batch, source, name)


def _look_up(pools: Pools, source: str, name: str) -> str:
    if not pools:
        return ""
    default = pools.get(_DEFAULT, {})
    return pools.get(source, {}).get(name) or default.get(name) or default.get(_DEFAULT, "")


class RecentJids:
    """Jids of Resqu jobs that ended within the last hour. A push of one of them is a repeat and adds nothing."""

    __slots__ = ("_ages", "ids")

    KEPT_S: Final = 3_600.0
    #: At 20,000 jobs a second this covers ten seconds. A client that lost a reply repeats its push within one second.
    AT_MOST: Final = 200_000

    def __init__(self, marks: list[tuple[float, str]] | None = None) -> None:
        self._ages: deque[tuple[float, str]] = deque(marks or ())
        self.ids: set[str] = {jid for _, jid in self._ages}

    def mark(self, jid: str, at: float) -> None:
        if jid not in self.ids:
            self.ids.add(jid)
            self._ages.append((at, jid))
        ages = self._ages
        while ages and (len(ages) > self.AT_MOST or ages[0][0] + self.KEPT_S <= at):
            self.ids.discard(ages.popleft()[1])

    def stored(self) -> list[tuple[float, str]]:
        return list(self._ages)


class ResquState:
    __slots__ = (
        "active",
        "backlogs",
        "batch_ends",
        "batches",
        "buffers",
        "deferred",
        "delayed",
        "in_buffer",
        "lanes",
        "mapping",
        "once",
        "plans",
        "reserved",
        "reserved_by",
        "running",
    )

    def __init__(self, mapping: Mapping | None = None) -> None:
        self.mapping = mapping or Mapping()
        self.reserved: dict[str, int] = {}  #: locks that connections reserved, by name
        self.reserved_by: dict[int, dict[str, None]] = {}  #: the same by connection
        self.running: set[str] = set()  #: locks whose holder was marked as running
        self.deferred: dict[str, tuple[str, Spec]] = {}  #: by lock: protocol and job
        self.delayed: Counter[int] = Counter()  #: scheduled Resqu jobs by the second they are due
        self.buffers: dict[str, Buffer] = {}  #: by key
        self.in_buffer: dict[Number, str] = {}  #: jobs leased or taken into a buffer, and its key
        self.batches: dict[str, ResquBatch] = {}
        self.lanes: dict[str, SortedList[tuple[Number]]] = {}  #: by batch: its jobs that were not leased yet
        self.batch_ends: SortedList[tuple[float, str]] = SortedList()  #: uncommitted batches by the end of their time
        self.active: dict[tuple[str, str], str] = {}  #: by pool and source: the active batch
        self.backlogs: dict[tuple[str, str], deque[str]] = {}  #: by pool and source: waiting batches, next one first
        self.plans: dict[str, dict[str, None]] = {}  #: by source: plan ids
        self.once = RecentJids()

    def reserve(self, name: str, by: int) -> None:
        self.unreserve(name)
        self.reserved[name] = by
        self.reserved_by.setdefault(by, {})[name] = None

    def unreserve(self, name: str) -> None:
        by = self.reserved.pop(name, None)
        if by is not None:
            names = self.reserved_by[by]
            del names[name]
            if not names:
                del self.reserved_by[by]

    def queue_of(self, job: Job | Spec) -> str:
        """The queue that a job goes to: its pool if it is a Resqu job, otherwise the queue it names."""
        protocol_data = None if job.extra is None else job.extra.protocol_data
        return (
            self.mapping.pool(protocol_data.source, protocol_data.name)
            if type(protocol_data) is ResquData
            else job.queue
        )
