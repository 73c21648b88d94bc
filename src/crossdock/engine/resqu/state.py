"""What the engine knows beside the job for Resqu: who has a unique id, deferred jobs, batches, buffers, pools.

Locks themselves stand in `state.locks`, plans in `memory.schedules`. Only apply functions may write here.
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
    """Which pool a job goes to (protocol page 10.3): its source's entry for its name, else that of all sources, else
    the pool of all."""

    __slots__ = ("batch", "pool", "static")

    #: Sources and names whose pool is remembered.
    REMEMBERED: Final = 4_096

    def __init__(self, static: Pools | None = None, batch: Pools | None = None) -> None:
        self.static = static or {}
        self.batch = batch or {}
        #: The pool of a job by itself, by its source and name
        self.pool = lru_cache(maxsize=self.REMEMBERED)(self._pool)

    def _pool(self, source: str, name: str) -> str:
        return _look_up(self.static, source, name) or UNASSIGNED

    def batch_pool(self, source: str, name: str) -> str:
        """Of a batch, by its source and the name of its first job. Empty: an allocator will say."""
        return _look_up(self.batch, source, name)


def _look_up(pools: Pools, source: str, name: str) -> str:
    if not pools:
        return ""
    of_all = pools.get(_DEFAULT, {})
    return pools.get(source, {}).get(name) or of_all.get(name) or of_all.get(_DEFAULT, "")


class RecentJids:
    """Ids of Resqu jobs that are gone: a repeat of such a push adds nothing. Kept for an hour, the newest of them."""

    __slots__ = ("_ages", "ids")

    KEPT_S: Final = 3_600.0
    #: At twenty thousand jobs a second still ten seconds; a client that lost a reply repeats within one.
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
        self.reserved: dict[str, int] = {}  #: locks that connections have, by name
        self.reserved_by: dict[int, dict[str, None]] = {}  #: the same by connection
        self.running: set[str] = set()  #: locks whose holder was said to be running
        self.deferred: dict[str, tuple[str, Spec]] = {}  #: by lock: door and job
        self.delayed: Counter[int] = Counter()  #: its scheduled jobs, by second; other doors' are not shown there
        self.buffers: dict[str, Buffer] = {}
        self.in_buffer: dict[Number, str] = {}  #: jobs that are leased or taken into one, and which
        self.batches: dict[str, ResquBatch] = {}
        self.lanes: dict[str, SortedList[tuple[Number]]] = {}  #: by stage: its jobs that nobody has begun
        self.batch_ends: SortedList[tuple[float, str]] = SortedList()
        self.active: dict[tuple[str, str], str] = {}  #: by pool and source: the stage that is worked on
        self.backlogs: dict[tuple[str, str], deque[str]] = {}  #: by pool and source: stages, the next one first
        self.plans: dict[str, dict[str, None]] = {}  #: by source: ids
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
        """Where it goes: of a Resqu job its pool, of another the queue it names."""
        protocol_data = None if job.extra is None else job.extra.protocol_data
        return (
            self.mapping.pool(protocol_data.source, protocol_data.name)
            if type(protocol_data) is ResquData
            else job.queue
        )
