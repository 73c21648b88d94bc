"""Metrics for the admin protocol: server status, activity by queue, traffic by protocol, journal, lake, event loop."""

import asyncio
import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from crossdock import __version__
from crossdock.auth.tls import Tls
from crossdock.engine.queries.jobs import state_index
from crossdock.engine.queries.queues import (
    leased_count,
    oldest_since,
    queue_named,
    queues_by_name,
    retrying_count,
    scheduled_count,
)
from crossdock.journal.files import free_bytes
from crossdock.model.states import State
from crossdock.protocols.admin.job_counts import jobs_by_state
from crossdock.protocols.admin.job_walk import walk
from crossdock.protocols.admin.measurements import (
    Distribution,
    History,
    JournalFigures,
    LakeFigures,
    ProtocolTraffic,
    Quantiles,
    QueueFigures,
    ServerFigures,
    SettingRow,
)
from crossdock.protocols.admin.selection import Selection
from crossdock.protocols.admin.server_status import Rates, ServerStatus, Sync
from crossdock.protocols.base import WireProtocol
from crossdock.protocols.timestamps import stamp
from crossdock.server.activity import OTHER, QUEUES, SERIES, STEP_S, STEPS, QueueActivity
from crossdock.server.connection_registry import ConnectedPeer
from crossdock.server.event_counter import EventCounter
from crossdock.server.group_commit import GroupCommit
from crossdock.server.histogram import BYTES, COUNTS, SECONDS, Histogram
from crossdock.server.journal_writer import JournalWriter
from crossdock.server.lake_keeper import LakeKeeper
from crossdock.server.loop_delay import LoopDelay
from crossdock.server.tracing import TraceKeeper

#: Seconds that the rates and sync times of the status cover.
WINDOW_S: Final = 10.0

#: Steps that the rates of a queue cover: a minute.
_RATE_STEPS: Final = 6

# Bounds of the histograms in replies. Fewer than the server keeps, because each is a line for every queue.
JOB_BOUNDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 3_600.0)
SYNC_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
DELAY_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

#: States whose jobs the engine does not count by queue. They are counted in slices, every few steps, unless there are
#: too many.
_TALLIED: Final = (State.BLOCKED, State.HELD, State.COMPLETE, State.FAILED, State.DEAD)
_TALLIED_AT_MOST: Final = 20_000
_TALLY_STEPS: Final = 3

#: Queues that are examined for jobs in one step, while there are free places for tracked queues.
_EXAMINED: Final = 2_000


class _Sample(NamedTuple):
    at: float
    pushed: int
    leased: int
    processed: int
    failed: int


class Metrics:
    def __init__(
        self,
        folder: Path,
        durability: str,
        *,
        commit: GroupCommit,
        journal_writer: JournalWriter,
        connections: Collection[ConnectedPeer],
        loop: asyncio.AbstractEventLoop,
        lake: LakeKeeper | None = None,
    ) -> None:
        self._folder = folder
        self._durability = durability
        self._commit = commit
        self._journal_writer = journal_writer
        self._connections = connections
        self._lake = lake
        self._started = time.monotonic()
        self._started_wall = time.time()
        self._samples: deque[_Sample] = deque([self._now()], maxlen=int(WINDOW_S) + 1)
        self._events = EventCounter()
        self._activity = self._events.activity
        commit.observers.append(self._events.observe)
        self._sync = Histogram(SECONDS)
        self._next_step = self._started + STEP_S
        self._step_end = self._started_wall
        self._tallies: dict[str, Mapping[str, int]] = {}  #: by state and queue
        self._tallying = False
        self.loop_delay = LoopDelay(loop)
        self.tls: Tls | None = None
        self.listeners: dict[str, str] = {}  #: name and address, once they are open
        self.protocols: list[WireProtocol] = []
        self.settings: list[SettingRow] = []
        self.diagnose: Callable[[], list[str]] = list
        self.tracing: TraceKeeper | None = None

    def _now(self) -> _Sample:
        counters = self._commit.state.counters
        return _Sample(time.monotonic(), counters.number, counters.token, counters.processed, counters.failures)

    # Sampling

    def sample(self) -> None:
        """Called every second."""
        self._samples.append(self._now())
        self._add_collected()
        now = time.monotonic()
        if now < self._next_step:
            return
        missed = int((now - self._next_step) / STEP_S)  # the machine may have been suspended
        for _ in range(1 + min(missed, STEPS)):
            self._end_step()
        self._next_step += (1 + missed) * STEP_S
        self._step_end = time.time()

    def _add_collected(self) -> None:
        self._events.add_collected()
        self.loop_delay.add_collected()
        times = self._journal_writer.uncounted
        self._sync.add(list(times))
        times.clear()

    def _end_step(self) -> None:
        state, activity = self._commit.state, self._activity
        if len(activity.queues) < QUEUES:  # queues with jobs from before the start
            for name, queue in islice(queues_by_name(state).items(), _EXAMINED):
                if queue.waiting:
                    activity.track(name)
        activity.end_step(self._ready_in, jobs_by_state(state)["ready"])
        if activity.steps % _TALLY_STEPS == 1 and not self._tallying:
            self._tallying = True
            self._commit.slices.run(self._tally())

    def _ready_in(self, name: str) -> int | None:
        queue = queue_named(self._commit.state, name)
        return None if queue is None else queue.waiting

    def _tally(self) -> Generator[float, None, None]:
        try:
            for job_state in _TALLIED:
                self._tallies[job_state.name.lower()] = yield from self._by_queue(job_state)
        finally:
            self._tallying = False

    def _by_queue(self, job_state: State) -> Generator[float, None, Mapping[str, int]]:
        """Jobs in that state by queue. Empty if there are too many to count."""
        tally: Counter[str] = Counter()
        if 0 < len(state_index(self._commit.state, job_state)) < _TALLIED_AT_MOST:
            wanted = Selection(frozenset({job_state}))
            yield from walk(self._commit.state, wanted, None, lambda some: tally.update(job.queue for job in some.jobs))
        return tally

    # What the admin protocol shows

    def rates(self) -> Rates:
        """Rates between the oldest sample and the newest. After a FLUSH, which resets the counters, they are 0."""
        first, last = self._samples[0], self._samples[-1]
        seconds = last.at - first.at
        if seconds <= 0:
            return Rates()
        return Rates(*(round(max(0, new - old) / seconds, 1) for old, new in zip(first[1:], last[1:], strict=True)))

    def server_status(self) -> ServerStatus:
        commit = self._commit
        return ServerStatus(
            version=__version__,
            pid=os.getpid(),
            data=str(self._folder.absolute()),
            durability=self._durability,
            listeners=self.listeners,
            uptime_s=time.monotonic() - self._started,
            connections=len(self._connections),
            memory_mib=memory_mib(),
            entries_written=commit.entries,
            tail_events=commit.tail_events,
            tail_bytes=commit.tail_bytes,
            disk_free_bytes=free_bytes(self._folder),
            refusing=commit.admission.disk_refusal,
            sync=sync_times(self._journal_writer.took),
            rates=self.rates(),
        )

    def figures(self) -> ServerFigures:
        self._add_collected()
        commit, events = self._commit, self._events
        return ServerFigures(
            version=__version__,
            started=self._started_wall,
            memory_bytes=memory_bytes(),
            disk_free_bytes=free_bytes(self._folder),
            refusing=commit.admission.disk_refusal is not None,
            journal=JournalFigures(
                sync=_distribution(self._sync, SYNC_BOUNDS),
                entry_bytes=_distribution(events.entry_bytes, BYTES),
                entry_events=_distribution(events.entry_events, COUNTS),
                written_bytes=commit.written_bytes,
                tail_bytes=commit.tail_bytes,
                tail_events=commit.tail_events,
            ),
            lake=None if self._lake is None else LakeFigures(self._lake.lag_s, self._lake.behind),
            traces=0 if self.tracing is None else self.tracing.sent,
            traces_dropped=0 if self.tracing is None else self.tracing.dropped,
            loop_delay=_distribution(self.loop_delay.histogram, DELAY_BOUNDS),
            protocols=self.traffic(),
            certificate_expires=None if self.tls is None else self.tls.certificate.expires,
        )

    def busiest(self) -> Iterable[str]:
        self._add_collected()
        return self._activity.queues

    def queue_figures(self, names: Iterable[str]) -> Iterator[QueueFigures]:
        state, now = self._commit.state, self._commit.now
        for name in names:
            found, queue = self._activity.queues.get(name), queue_named(state, name)
            if found is None:
                continue
            states = {
                "ready": 0 if queue is None else queue.waiting,
                "scheduled": scheduled_count(state, name),
                "leased": leased_count(state, name),
                "retrying": retrying_count(state, name),
            } | {job_state: tally[name] for job_state, tally in self._tallies.items() if tally.get(name)}
            oldest = oldest_since(state, name)
            yield _queue_figures(
                name,
                found,
                states,
                oldest_s=None if oldest is None else max(0.0, now.wall - oldest),
                paused=queue is not None and queue.paused,
            )

    def other_figures(self) -> QueueFigures:
        return _queue_figures(OTHER, self._activity.other, {}, oldest_s=None, paused=False)

    def queue_rates(self, queue: str) -> Rates | None:
        found, steps = self._activity.queues.get(queue), self._activity.steps
        if found is None or not steps:
            return None
        last = min(steps, _RATE_STEPS)
        return Rates(*(round(count / (last * STEP_S), 2) for count in found.lately(steps, last)))

    def history(self, queue: str | None) -> History | None:
        found = self._activity.total if queue is None else self._activity.queues.get(queue)
        if found is None:
            return None
        series = found.series(self._activity.steps)
        return History(
            step_s=STEP_S,
            end=stamp(self._step_end),
            ready=series.ready,
            **{name: series.counts[name] for name in SERIES},
        )

    def times(self, queue: str) -> tuple[Quantiles, Quantiles]:
        self._add_collected()
        found = self._activity.queues.get(queue)
        return (Quantiles(), Quantiles()) if found is None else (_quantiles(found.wait), _quantiles(found.run))

    def traffic(self) -> list[ProtocolTraffic]:
        connections = Counter(each.protocol for each in self._connections)
        found = [
            ProtocolTraffic(
                each.name, self.listeners.get(each.name, ""), connections[each.name], each.commands, each.errors
            )
            for each in self.protocols
        ]
        if "http" in self.listeners:
            found.append(ProtocolTraffic("http", self.listeners["http"], None, None, None))
        return found

    def settings_in_effect(self) -> list[SettingRow]:
        return self.settings

    def warnings(self) -> list[str]:
        return self.diagnose()


def _queue_figures(
    name: str, found: QueueActivity, states: Mapping[str, int], *, oldest_s: float | None, paused: bool
) -> QueueFigures:
    pushed, leased, processed, failed, retried, dead, expired = found.totals
    return QueueFigures(
        queue=name,
        pushed=pushed,
        leased=leased,
        processed=processed,
        failed=failed,
        retried=retried,
        dead=dead,
        expired=expired,
        wait=_distribution(found.wait, JOB_BOUNDS),
        run=_distribution(found.run, JOB_BOUNDS),
        states=states,
        oldest_s=oldest_s,
        paused=paused,
    )


def _distribution(histogram: Histogram, bounds: tuple[float, ...]) -> Distribution:
    return Distribution(bounds, histogram.cumulative(bounds), histogram.sum)


def _quantiles(histogram: Histogram) -> Quantiles:
    count, (p50, p95, p99) = histogram.quantiles((0.5, 0.95, 0.99))
    return Quantiles(p50, p95, p99, count)


def sync_times(took: Iterable[tuple[float, float]]) -> Sync:
    """Sync times in the window, from pairs of the monotonic time at the end and the seconds it took."""
    since = time.monotonic() - WINDOW_S
    recent = sorted(seconds * 1e3 for ended, seconds in took if ended >= since)
    if not recent:
        return Sync()
    return Sync(len(recent), _rank(recent, 0.5), _rank(recent, 0.99), round(recent[-1], 3))


def _rank(ordered: list[float], share: float) -> float:
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)


def memory_bytes() -> int:
    """Resident memory of the process."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory_mib() -> int:
    return memory_bytes() // (1024 * 1024)
