"""The state of the engine. Only apply functions may change it.

A job is in `jobs` by its number and in `jids` by its jid. `index.placement` enters it into the other indexes.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from crossdock.engine import hooks
from crossdock.engine.hooks import REMOVED
from crossdock.engine.index.bulk_loads import BulkLoads
from crossdock.engine.index.dependents import Key, PostponedDependents
from crossdock.engine.index.failures import FailureIndex
from crossdock.engine.index.job_table import BLOCK_BITS, PART_MASK, JidIndex, JobTable
from crossdock.engine.index.lazy_deadlines import ByCaller, LazyDeadlines
from crossdock.engine.index.once import OncePushes
from crossdock.engine.index.queue import Queue
from crossdock.engine.index.rates import RateIndex
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.index.tags import TagIndex
from crossdock.engine.index.workers import WorkerIndex
from crossdock.engine.keyspace.store import KeyStore
from crossdock.engine.qless.state import QlessState
from crossdock.engine.records import job_history
from crossdock.engine.records.stats import Stats
from crossdock.engine.resqu.state import ResquState
from crossdock.model.events import AnyEvent, Audited
from crossdock.model.job import Job, Number
from crossdock.model.records import Batch, Outcome, Progress, Rate, Schedule, Throttle
from crossdock.model.states import INDEXED_STATES, State

#: Names (kinds, workers) that are shared between jobs. With more distinct names than this, each job keeps its own
#: string.
_NAMES_AT_MOST: Final = 10_000
_SHARED_LENGTH: Final = 255  #: characters; the class of a qless job may be longer


#: Entries of the audit trail. Older ones are in the journal and in the lake.
AUDIT_ENTRIES: Final = 1_000

#: (-priority, due, number): scheduled jobs of a queue, as they are listed.
Waiting = tuple[int | float, float, Number]

#: Containers that are not used any more.
Discarded = dict[Any, Any] | SortedList[Any] | set[bytes]


class Lock(NamedTuple):
    """A unique lock: no other job is enqueued under its name."""

    holder: Number
    end: float  #: steady


class EngineState:
    # An object of more than 30 attributes without slots keeps them in a dict, which makes every path a fifth slower.
    __slots__ = (
        "audit",
        "batch_ends",
        "batches",
        "blocked_in",
        "by_state",
        "configured",
        "counters",
        "dependents",
        "discarded",
        "failures",
        "foreground",
        "held_in",
        "history_limit",
        "jids",
        "job_ends",
        "jobs",
        "keys",
        "lazy",
        "leased_in",
        "limits",
        "loads",
        "lock_ends",
        "locks",
        "names",
        "next_runs",
        "once",
        "outcome_ends",
        "outcomes",
        "owed",
        "pending",
        "progress",
        "progress_ends",
        "qless",
        "queues",
        "rate_index",
        "rates",
        "resqu",
        "retrying_in",
        "scheduled_in",
        "schedules",
        "scripts",
        "stats",
        "strict",
        "tags",
        "throttles",
        "unresolved",
        "workers",
    )

    def __init__(self) -> None:
        hooks.require()
        self.counters = Counters()
        self.throttles: dict[str, Throttle] = {}
        self.configured: list[str] = []  #: names of the configured throttles
        self.rates: dict[str, Rate] = {}  #: rate limits by key; a flush keeps them
        self.schedules: dict[str, Schedule] = {}
        self.next_runs: SortedList[tuple[float, str]] = SortedList()
        self.audit: deque[Audited] = deque(maxlen=AUDIT_ENTRIES)  #: the newest is last; a flush keeps them
        self.scripts: dict[str, str] = {}  #: SHA-1 of a loaded script, and its dialect; a flush keeps them
        self.keys = KeyStore()
        self.resqu = ResquState()
        self.once = OncePushes()
        self.discarded: list[Discarded] = []
        self._empty()

    def clear(self) -> None:
        """Remove everything but numbers and the configuration. `free` frees the memory afterwards."""
        self.discarded += (
            *self.jobs.blocks.values(),
            *self.jids.parts,
            *(queue.ready for queue in self.queues.values()),
            *self.by_state.values(),
            self.job_ends,
            self.dependents,
            self.strict,
            *(each.waiting for each in self.unresolved.values()),
            *self.scheduled_in.values(),
            *self.retrying_in.values(),
            self.keys.entries,
            self.keys.walk,
            self.keys.ends,
            self.qless.completed,
            *self.qless.failed_in.values(),
            *self.failures.groups.values(),
            *self.blocked_in.values(),
            *self.held_in.values(),
            *self.pending.values(),
            *(wait.held for wait in self.rate_index.waits.values()),
            *self.resqu.lanes.values(),
            *(load.jids for load in self.loads.by_run.values()),
            self.loads.once,
            self.once.jids,
            self.outcomes,
        )
        self.schedules = {name: each for name, each in self.schedules.items() if not (each.plan or each.app)}
        self.next_runs = SortedList((each.next, name) for name, each in self.schedules.items())
        self._empty()

    def _empty(self) -> None:
        self.jobs = JobTable()
        self.jids = JidIndex()
        self.queues: dict[str, Queue] = {}
        self.by_state: dict[State, SortedList[tuple[float, Number]]] = {state: SortedList() for state in INDEXED_STATES}
        self.locks: dict[str, Lock] = {}
        self.batches: dict[str, Batch] = {}
        self.progress: dict[str, Progress] = {}
        # The holder comes before the name, so locks that end together are appended in order.
        self.lock_ends: SortedList[tuple[float, Number, str]] = SortedList()
        self.batch_ends: SortedList[tuple[float, str]] = SortedList()
        self.progress_ends: SortedList[tuple[float, str]] = SortedList()  #: those that are dated
        self.once = self.once.emptied()
        self.outcomes: dict[str, Outcome] = {}  #: by jid, the oldest first
        self.outcome_ends: SortedList[tuple[float, str]] = SortedList()
        self.job_ends: SortedList[tuple[float, Number]] = SortedList()
        self.throttles = {name: each for name, each in self.throttles.items() if each.queue}
        for throttle in self.throttles.values():
            throttle.holders, throttle.pending = {}, {}
        self.pending: dict[str, SortedList[tuple[float, str]]] = {}  #: by throttle: since when, and jid
        #: by throttle: how many more jobs have room, and their caller's time
        self.owed: dict[str, tuple[int, float]] = {}
        self.keys = self.keys.emptied()
        #: by job: the jobs that wait for it, in the order they came
        self.dependents: dict[Number, dict[Number, None]] = {}
        self.strict: dict[Number, int] = {}  #: by job: how many dependents fail with it even if it is kept
        self.unresolved: dict[
            Key, PostponedDependents
        ] = {}  #: postponed dependents of ended jobs; the last ones are resolved first
        self.foreground: dict[Number, None] = {}  #: jobs that end with this run of the server
        self.leased_in: defaultdict[str, int] = defaultdict(int)  #: by queue, known or not
        self.retrying_in: dict[str, SortedList[tuple[float, Number]]] = {}
        self.scheduled_in: dict[str, SortedList[Waiting]] = {}
        self.blocked_in: dict[str, SortedList[ByCaller]] = {}
        self.held_in: dict[str, SortedList[ByCaller]] = {}
        self.lazy = LazyDeadlines()
        self.failures = FailureIndex()
        self.qless = QlessState()
        self.tags = TagIndex()
        self.workers = WorkerIndex()
        self.limits: dict[str, float] = {}  #: qless setting: how many leases a queue may have at a time
        self.history_limit: float = job_history.DEFAULT  #: entries that are kept of a job's history
        self.resqu = ResquState(self.resqu.mapping)
        self.loads = BulkLoads()
        self.stats = Stats()
        self.rate_index = RateIndex(self.rates)
        self.names: dict[str, str] = {}
        self.counters.processed = self.counters.failures = self.counters.evicted = 0

    def free(self, items: int) -> bool:
        """Free some of what `clear` discarded. Returns True if there is more. Freeing it all at once would block all
        clients.
        """
        while self.discarded and items > 0:
            container = self.discarded[-1]
            take = container.popitem if isinstance(container, dict) else container.pop
            for _ in range(min(items, len(container))):
                take()
                items -= 1
            if not container:
                self.discarded.pop()
        return bool(self.discarded)

    def queue(self, name: str, at: float, t: float | None = None) -> Queue:
        """The queue of that name. It is registered if it is new."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, at, first_t=t)
        elif not queue.listed:
            del self.queues[name]  # to clients that list queues it is new, so it comes last
            self.queues[name] = queue
            queue.listed = True
            queue.first_seen, queue.first_t = at, at if t is None else t
        return queue

    def unlisted_queue(self, name: str, at: float) -> Queue:
        """The queue of that name. A new one is not listed until a client or an operator registers it."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, at, listed=False)
        return queue

    def return_queue(self, job: Job, at: float) -> Queue:
        """The queue a job returns to. A forgotten queue is registered again if the job's protocol wants that."""
        data = job.extra.protocol_data if job.extra is not None else None
        registers = data is None or data.registers_queue
        return self.queue(job.queue, at) if registers else self.unlisted_queue(job.queue, at)

    def share(self, name: str) -> str:
        """The string object of that text that all jobs share."""
        known = self.names.get(name)
        if known is not None:
            return known
        if len(self.names) < _NAMES_AT_MOST and len(name) <= _SHARED_LENGTH:
            self.names[name] = name
        return name

    def add_job(self, job: Job) -> None:
        """Enter the job by its number and its jid. `placement` enters it into the other indexes."""
        # `JobTable.add` and `JidIndex.add` written out, because every job takes this path.
        number, jid = job.number, job.jid
        block = self.jobs.blocks.get(number >> BLOCK_BITS)
        if block is None:
            self.jobs.add(job)
        else:
            block[number] = job
        if self.jids.parts[hash(jid) & PART_MASK].setdefault(jid, number) != number:
            self.jids.add(jid, number)

    def remove_job(self, job: Job, event: AnyEvent) -> None:
        """Remove the job. It must not be in the indexes of `placement` any more."""
        self.jobs.take(job.number)
        extra = job.extra
        if extra is not None:
            if job.end:
                self.job_ends.take((job.end, job.number))
            if extra.links is not None:
                self.foreground.pop(job.number, None)
            if extra.tags:
                self.tags.drop(job.number, job.jid, extra.tags, clean=bool(extra.throttles))
            data = extra.protocol_data
            if data is not None and (removed := REMOVED.get(type(data))) is not None:
                removed(self, job, data, event)
        self.jids.take(job.jid, job.number)

    def rename(self, job: Job, jid: str) -> None:
        """The job continues under another jid."""
        self.jids.take(job.jid, job.number)
        if job.extra is not None and job.extra.tags:
            self.tags.rename(job.number, job.jid, jid, job.extra.tags)
        job.jid = jid
        self.jids.add(jid, job.number)

    def end_at(self, job: Job, end: float) -> None:
        """Set the time at which the job is removed."""
        job.end = end
        self.job_ends.add((end, job.number))

    def numbered(self, number: Number) -> Iterator[Job]:
        """As `named`, by number."""
        job = self.jobs.get(number)
        if job is not None:
            yield job

    def named(self, jid: str) -> Iterator[Job]:
        """All live jobs of that jid, oldest first."""
        return (self.jobs[number] for number in self.jids.all(jid))


# Counters.


@dataclass(slots=True)  # not a Struct: `at` is set at every event, which costs five times as much there
class Counters:
    """Plain numbers of the state. A snapshot stores them unchanged."""

    number: int = 0  #: of the last job
    token: int = 0  #: of the last lease
    at: float = 0.0  #: of the last event
    epoch: int = 0  #: how often the server has started
    first_token: int = 1  #: leases below it were given before this start
    processed: int = 0
    failures: int = 0
    evicted: int = 0  #: jobs removed by their time to live before they were finished, since this start
    failed: int = 0  #: `QlessData.order` of the last failed job
    boot: str = ""  #: these four are from the last `Started` event
    offset: float = 0.0
    held_at: float = 0.0
    held_until: float = 0.0
