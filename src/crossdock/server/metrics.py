"""Metrics for the admin protocol: request rates, sync times, memory, disk."""

import math
import os
import time
from collections import deque
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from crossdock import __version__
from crossdock.journal.files import free_bytes
from crossdock.protocols.admin.server_status import Rates, ServerStatus, Sync
from crossdock.server.group_commit import GroupCommit
from crossdock.server.journal_writer import JournalWriter

#: Seconds that rates and sync times cover.
WINDOW_S: Final = 10.0


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
        connections: Collection[object],
    ) -> None:
        self._folder = folder
        self._durability = durability
        self._commit = commit
        self._journal_writer = journal_writer
        self._connections = connections
        self._started = time.monotonic()
        self._samples: deque[_Sample] = deque([self._now()], maxlen=int(WINDOW_S) + 1)
        self.listeners: dict[str, str] = {}  #: name and address, once they are open

    def _now(self) -> _Sample:
        counters = self._commit.state.counters
        return _Sample(time.monotonic(), counters.number, counters.token, counters.processed, counters.failures)

    def sample(self) -> None:
        """Called every second."""
        self._samples.append(self._now())

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


def sync_times(took: Iterable[tuple[float, float]]) -> Sync:
    """Sync times in the window, from pairs of the monotonic time at the end and the seconds it took."""
    since = time.monotonic() - WINDOW_S
    recent = sorted(seconds * 1e3 for ended, seconds in took if ended >= since)
    if not recent:
        return Sync()
    return Sync(len(recent), _rank(recent, 0.5), _rank(recent, 0.99), round(recent[-1], 3))


def _rank(ordered: list[float], share: float) -> float:
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)


def memory_mib() -> int:
    """Resident memory of the process."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)
