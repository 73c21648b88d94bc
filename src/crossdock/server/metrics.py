"""The server's pulse: how fast it has worked lately, how long its disk took, what it has left. For the control door."""

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

#: What "lately" means.
LATELY_S: Final = 10.0


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
        turn: GroupCommit,
        journal_writer: JournalWriter,
        connections: Collection[object],
    ) -> None:
        self._folder = folder
        self._durability = durability
        self._turn = turn
        self._journal_writer = journal_writer
        self._connections = connections
        self._started = time.monotonic()
        self._beats: deque[_Sample] = deque([self._now()], maxlen=int(LATELY_S) + 1)
        self.listeners: dict[str, str] = {}  #: name and address, once they are open

    def _now(self) -> _Sample:
        counters = self._turn.state.counters
        return _Sample(time.monotonic(), counters.number, counters.token, counters.processed, counters.failures)

    def beat(self) -> None:
        """Called every second."""
        self._beats.append(self._now())

    def rates(self) -> Rates:
        """Between the oldest beat that is kept and the newest. A FLUSH sets counters back; then there is no rate."""
        first, last = self._beats[0], self._beats[-1]
        seconds = last.at - first.at
        if seconds <= 0:
            return Rates()
        return Rates(*(round(max(0, new - old) / seconds, 1) for old, new in zip(first[1:], last[1:], strict=True)))

    def server_status(self) -> ServerStatus:
        turn = self._turn
        return ServerStatus(
            version=__version__,
            pid=os.getpid(),
            data=str(self._folder.absolute()),
            durability=self._durability,
            listeners=self.listeners,
            uptime_s=time.monotonic() - self._started,
            connections=len(self._connections),
            memory_mib=memory_mib(),
            batches_written=turn.batches,
            tail_events=turn.tail_events,
            tail_bytes=turn.tail_bytes,
            disk_free_bytes=free_bytes(self._folder),
            refusing=turn.admission.disk_refusal,
            sync=sync_times(self._journal_writer.took),
            rates=self.rates(),
        )


def sync_times(took: Iterable[tuple[float, float]]) -> Sync:
    """Of (when it ended, how long it took), in seconds of the monotonic clock."""
    since = time.monotonic() - LATELY_S
    lately = sorted(seconds * 1e3 for ended, seconds in took if ended >= since)
    if not lately:
        return Sync()
    return Sync(len(lately), _rank(lately, 0.5), _rank(lately, 0.99), round(lately[-1], 3))


def _rank(ordered: list[float], share: float) -> float:
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)


def memory_mib() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // (1024 * 1024)
