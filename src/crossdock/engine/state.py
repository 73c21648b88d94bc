"""Everything the engine knows. A job is in `jobs` under its number and in `jids` under its name; where it stands
besides is the affair of `placing`. Only apply functions may write here."""

from collections import defaultdict
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
from crossdock.engine.index.queue import Queue
from crossdock.engine.index.sorted_list import SortedList
from crossdock.engine.index.tags import TagIndex
from crossdock.engine.index.workers import WorkerIndex
from crossdock.engine.keyspace.store import KeyStore
from crossdock.engine.qless.state import QlessState
from crossdock.engine.records import job_history
from crossdock.engine.records.stats import Stats
from crossdock.engine.resqu.state import ResquState
from crossdock.model.commands.core import FollowUp
from crossdock.model.events import AnyEvent
from crossdock.model.job import Job, Number
from crossdock.model.records import Batch, Progress, Schedule, Throttle
from crossdock.model.states import SHELVED, State

#: Names (kinds, workers) worth sharing between jobs; beyond this many distinct ones each job keeps its own.
_NAMES_AT_MOST: Final = 10_000
_SHARED_LENGTH: Final = 255  #: characters; the class of a qless job may have more


#: (-priority, due, number): scheduled jobs of a queue as they are listed
Waiting = tuple[int | float, float, Number]

#: Containers that nobody needs any more.
Discarded = dict[Any, Any] | SortedList[Any] | set[bytes]


class Lock(NamedTuple):
    """A name held by a job: no other is taken in under it."""

    holder: Number
    end: float  #: steady


class EngineState:
    # Beyond 30 attributes an object without slots finds each of them in a dict: a fifth slower on every path.
    __slots__ = (
        "batch_ends",
        "batches",
        "blocked_in",
        "by_state",
        "configured",
        "counters",
        "dependents",
        "discarded",
        "failures",
        "follow_ups",
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
        "owed",
        "pending",
        "progress",
        "progress_ends",
        "qless",
        "queues",
        "resolved_dependents",
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
        self.configured: list[str] = []  #: of them: those of the configuration
        self.schedules: dict[str, Schedule] = {}
        self.next_runs: SortedList[tuple[float, str]] = SortedList()
        self.scripts: dict[str, str] = {}  #: SHA-1 of a loaded script and what it stands for; a flush spares them
        self.keys = KeyStore()
        self.resqu = ResquState()
        self.discarded: list[Discarded] = []
        self._empty()

    def clear(self) -> None:
        """Forget all but numbers and what the configuration says. What a million jobs leave is freed by `free`."""
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
            *self.resqu.lanes.values(),
            *(load.jids for load in self.loads.by_run.values()),
            self.loads.once,
        )
        self.schedules = {name: each for name, each in self.schedules.items() if not each.plan}
        self.next_runs = SortedList((each.next, name) for name, each in self.schedules.items())
        self._empty()

    def _empty(self) -> None:
        self.jobs = JobTable()
        self.jids = JidIndex()
        self.queues: dict[str, Queue] = {}
        self.by_state: dict[State, SortedList[tuple[float, Number]]] = {state: SortedList() for state in SHELVED}
        self.locks: dict[str, Lock] = {}
        self.batches: dict[str, Batch] = {}
        self.progress: dict[str, Progress] = {}
        # With the holder before the name: locks of one turn end together, and are added at the end all the same.
        self.lock_ends: SortedList[tuple[float, Number, str]] = SortedList()
        self.batch_ends: SortedList[tuple[float, str]] = SortedList()
        self.progress_ends: SortedList[tuple[float, str]] = SortedList()  #: of those that are dated
        self.job_ends: SortedList[tuple[float, Number]] = SortedList()
        self.throttles = {name: each for name, each in self.throttles.items() if each.queue}
        for throttle in self.throttles.values():
            throttle.holders, throttle.pending = {}, {}
        self.pending: dict[str, SortedList[tuple[float, str]]] = {}  #: by throttle: since when, and who
        self.owed: dict[str, tuple[int, float]] = {}  #: by throttle: how many more have room, by their caller's time
        self.keys = self.keys.emptied()
        self.follow_ups: list[FollowUp] = []  #: to look at before the command is over; empty between commands
        self.resolved_dependents: list[tuple[Number, bool]] = []  #: as `follow_ups`, for `Resolve`
        self.dependents: dict[Number, dict[Number, None]] = {}  #: who waits for that job, in the order they came
        self.strict: dict[Number, int] = {}  #: how many of them fail with it even if it is kept
        self.unresolved: dict[
            Key, PostponedDependents
        ] = {}  #: dependents of ended jobs; the last ones are resolved first
        self.foreground: dict[Number, None] = {}  #: jobs that end with the server's run
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
        self.limits: dict[str, float] = {}  #: how many leases a queue may have at a time, as qless configures it
        self.history_limit: float = job_history.DEFAULT  #: entries that a job's history keeps
        self.resqu = ResquState(self.resqu.mapping)
        self.loads = BulkLoads()
        self.stats = Stats()
        self.names: dict[str, str] = {}
        self.counters.processed = self.counters.failures = self.counters.evicted = 0

    def free(self, items: int) -> bool:
        """Free some of what `clear` discarded. True: there is more. To free it all at once would stop the doors."""
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
        """The queue of that name, registered if it is new."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, at, first_t=t)
        elif not queue.listed:
            del self.queues[name]  # it is new to those who list it, and comes last
            self.queues[name] = queue
            queue.listed = True
            queue.first_seen, queue.first_t = at, at if t is None else t
        return queue

    def standing(self, name: str, at: float) -> Queue:
        """The queue of that name, to hold something; it is registered by whoever wants it known."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, at, listed=False)
        return queue

    def stand_in(self, job: Job, at: float) -> Queue:
        """The queue a job comes back to. One that was forgotten is registered again where its protocol wants that."""
        data = job.extra.protocol_data if job.extra is not None else None
        registers = data is None or data.registers_queue
        return self.queue(job.queue, at) if registers else self.standing(job.queue, at)

    def share(self, name: str) -> str:
        """The one string object of that text that all jobs point to."""
        known = self.names.get(name)
        if known is not None:
            return known
        if len(self.names) < _NAMES_AT_MOST and len(name) <= _SHARED_LENGTH:
            self.names[name] = name
        return name

    def know(self, job: Job) -> None:
        """Enter it under its number and its name. Where it stands is `placing`'s affair."""
        # `Jobs.add` and `Jids.add` alone would do; every job goes this way.
        number, jid = job.number, job.jid
        block = self.jobs.blocks.get(number >> BLOCK_BITS)
        if block is None:
            self.jobs.add(job)
        else:
            block[number] = job
        if self.jids.parts[hash(jid) & PART_MASK].setdefault(jid, number) != number:
            self.jids.add(jid, number)

    def drop(self, job: Job, event: AnyEvent) -> None:
        """Take the job out altogether; it must not stand in any order any more."""
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
        """It goes on under another jid."""
        self.jids.take(job.jid, job.number)
        if job.extra is not None and job.extra.tags:
            self.tags.rename(job.number, job.jid, jid, job.extra.tags)
        job.jid = jid
        self.jids.add(jid, job.number)

    def end_at(self, job: Job, end: float) -> None:
        """Its time runs from now on."""
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


# What the engine counts.


@dataclass(slots=True)  # not a Struct: `at` is set at every event, which costs five times as much there
class Counters:
    """Plain numbers of the state; a snapshot keeps them as they are."""

    number: int = 0  #: the last job's
    token: int = 0  #: the last lease's
    at: float = 0.0  #: the last event's
    epoch: int = 0  #: how often the server has started
    first_token: int = 1  #: leases below it were given before this start
    processed: int = 0
    failures: int = 0
    evicted: int = 0  #: jobs whose time to live was over before they were finished, since this start
    failed: int = 0  #: the last failed job's `QlessFace.order`
    boot: str = ""  #: these four as the last `Started` has them
    offset: float = 0.0
    held_at: float = 0.0
    held_until: float = 0.0
