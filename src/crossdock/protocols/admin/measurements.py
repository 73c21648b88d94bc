"""Figures that the server measures: activity and times by queue, traffic by protocol, journal, lake and event loop."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from crossdock.protocols.admin.server_status import Rates, ServerStatus


class Distribution(msgspec.Struct, frozen=True):
    """A histogram since the start."""

    bounds: tuple[float, ...]
    counts: list[int]  #: values up to each bound; the last one counts all values
    sum: float


class Quantiles(msgspec.Struct, frozen=True):
    """Times of the last hour."""

    p50_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    count: int = 0


class History(msgspec.Struct, frozen=True):
    """The last hour, oldest step first."""

    step_s: float
    end: str  #: the end of the last step
    pushed: list[int]
    leased: list[int]
    processed: list[int]
    failed: list[int]
    ready: list[int]  #: ready jobs at the end of each step


class ProtocolTraffic(msgspec.Struct, frozen=True):
    protocol: str
    address: str
    connections: int | None  #: None: not known, as for HTTP
    commands: int | None
    errors: int | None


class SettingRow(msgspec.Struct, frozen=True):
    name: str
    value: str  #: of a secret: "set" or "not set"
    source: str
    description: str


class QueueFigures(msgspec.Struct, frozen=True):
    """Counters since the server tracks the queue."""

    queue: str
    pushed: int
    leased: int
    processed: int
    failed: int
    retried: int
    dead: int
    expired: int  #: leases
    wait: Distribution
    run: Distribution
    states: Mapping[str, int]
    oldest_s: float | None
    paused: bool


class JournalFigures(msgspec.Struct, frozen=True):
    sync: Distribution
    entry_bytes: Distribution
    entry_events: Distribution
    written_bytes: int
    tail_bytes: int
    tail_events: int


class LakeFigures(msgspec.Struct, frozen=True):
    lag_s: float
    lag_bytes: int


class ServerFigures(msgspec.Struct, frozen=True):
    version: str
    started: float  #: wall
    memory_bytes: int
    disk_free_bytes: int
    refusing: bool
    journal: JournalFigures
    lake: LakeFigures | None  #: None: the lake is off
    traces: int  #: traced jobs that were passed to the exporter
    traces_dropped: int
    loop_delay: Distribution
    protocols: list[ProtocolTraffic]
    certificate_expires: float | None = None  #: wall; None: no listener uses TLS


class StatusSource(Protocol):
    """The server's own figures, as the admin protocol shows them."""

    def server_status(self) -> ServerStatus: ...

    def figures(self) -> ServerFigures: ...

    def busiest(self) -> Iterable[str]:
        """The tracked queues."""

    def queue_figures(self, names: Iterable[str]) -> Iterator[QueueFigures]:
        """The figures of tracked queues. The name of a queue that is not tracked is skipped."""

    def other_figures(self) -> QueueFigures:
        """All queues that are not tracked, together."""

    def queue_rates(self, queue: str) -> Rates | None:
        """Over the last minute. None: the queue is not tracked, or the server has just started."""

    def history(self, queue: str | None) -> History | None:
        """Of one queue, or of all. None: the queue is not tracked."""

    def times(self, queue: str) -> tuple[Quantiles, Quantiles]:
        """The wait and run times of a queue."""

    def traffic(self) -> list[ProtocolTraffic]:
        """By listener, and of the admin protocol."""

    def settings_in_effect(self) -> list[SettingRow]: ...

    def warnings(self) -> list[str]:
        """What endangers jobs, one sentence each, without the journal's and the lake's own checks."""


# Which queues workers ask for.


class Demand(Protocol):
    @property
    def started(self) -> float:
        """Steady: since when requests are recorded."""

    def asked_at(self, queue: str) -> float | None:
        """Steady: when a worker last asked for this queue. None: never since `started`."""

    def askers(self, queue: str) -> int:
        """How many requests wait on this queue now."""

    def last_asked(self, worker: str) -> tuple[str, ...]:
        """The queues of the last request of this worker, the first 20 of them. Empty: none since `started`."""


def asked_s(demand: Demand, queue: str, steady: float) -> float | None:
    """Seconds since a worker last asked for this queue; 0 while one waits on it. None: never since the start."""
    if demand.askers(queue):
        return 0.0
    at = demand.asked_at(queue)
    return None if at is None else max(0.0, steady - at)
