"""`/metrics`: the server's figures in the text format of Prometheus.

Labels are bounded: the server reports at most 200 queues, and all others together as queue `_other`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from litestar import Response, get
from litestar.datastructures import State
from msgspec import structs
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from crossdock.protocols.admin.measurements import Distribution, JournalFigures, QueueFigures, ServerFigures
from crossdock.web.traffic import PROTOCOL

_PAGE_BYTES: Final = 4096


class Figures(msgspec.Struct, frozen=True):
    """The part of the reply to `metrics` that is shown."""

    states: dict[str, int]
    queue_count: int
    batches: int
    queues: list[QueueFigures]
    other: QueueFigures
    server: ServerFigures


class _Reply(msgspec.Struct, frozen=True):
    metrics: Figures


_decode = msgspec.json.Decoder(_Reply).decode


class ServerCollector(Collector):
    """The metric families of one reply."""

    def __init__(self, figures: Figures, http: dict[str, int]) -> None:
        self._figures = figures
        self._http = http

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        yield from _server(figures.server)
        yield from _jobs(figures)
        yield from _counters([*figures.queues, figures.other])
        yield from _times([*figures.queues, figures.other])
        yield from _journal(figures.server.journal)
        yield from _lake(figures.server)
        yield from _protocols(figures.server, self._http)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"crossdock_{name}", text, value=value)


def _server(server: ServerFigures) -> Iterator[Metric]:
    build = GaugeMetricFamily("crossdock_build_info", "Version of the server. Always 1.", labels=["version"])
    build.add_metric([server.version], 1)
    yield build
    yield _gauge("start_time_seconds", "Start of the server, in seconds since 1970.", server.started)
    yield _gauge("memory_bytes", "Resident memory of the server process.", server.memory_bytes)
    yield _gauge("web_memory_bytes", "Resident memory of the web process.", _own_memory())
    yield _gauge("disk_free_bytes", "Free space on the disk of the data folder.", server.disk_free_bytes)
    yield _gauge("refusing_jobs", "1 while new jobs are refused because the disk is full.", int(server.refusing))
    yield CounterMetricFamily("crossdock_traces", "Traced jobs passed to the exporter.", server.traces)
    yield CounterMetricFamily("crossdock_traces_dropped", "Traced jobs that were dropped.", server.traces_dropped)
    if server.certificate_expires is not None:
        text = "End of the validity of the certificate, in seconds since 1970."
        yield _gauge("tls_certificate_expiry_timestamp_seconds", text, server.certificate_expires)
    yield _histogram("event_loop_delay_seconds", "Delay of timers in the server's event loop.", server.loop_delay)


def _jobs(figures: Figures) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("crossdock_jobs", "Jobs by queue and state.", labels=["queue", "state"])
    oldest = GaugeMetricFamily(
        "crossdock_oldest_ready_job_seconds", "Wait of the job that has been ready the longest.", labels=["queue"]
    )
    paused = GaugeMetricFamily("crossdock_queue_paused", "1 if the queue is paused.", labels=["queue"])
    others = dict(figures.states)
    for queue in figures.queues:
        for state, count in queue.states.items():
            jobs.add_metric([queue.queue, state], count)
            others[state] = others.get(state, 0) - count
        oldest.add_metric([queue.queue], queue.oldest_s or 0.0)
        paused.add_metric([queue.queue], int(queue.paused))
    for state, count in others.items():
        jobs.add_metric([figures.other.queue, state], max(0, count))
    yield jobs
    yield oldest
    yield paused
    yield _gauge("queues", "Known queues.", figures.queue_count)
    yield _gauge("batches", "Batches of Faktory and Resqu.", figures.batches)


_COUNTERS: Final = (
    ("pushed", "jobs_pushed", "Jobs pushed."),
    ("leased", "jobs_leased", "Jobs leased to workers."),
    ("processed", "jobs_processed", "Attempts that ended, with success or failure."),
    ("failed", "jobs_failed", "Attempts that failed."),
    ("retried", "jobs_retried", "Failed attempts after which the job is tried again."),
    ("dead", "jobs_dead", "Jobs that died: no attempts left, or killed by an operator."),
    ("expired", "leases_expired", "Leases that expired before the worker reported."),
)


def _counters(queues: Iterable[QueueFigures]) -> Iterator[Metric]:
    for field, name, text in _COUNTERS:
        family = CounterMetricFamily(f"crossdock_{name}", text, labels=["queue"])
        for queue in queues:
            family.add_metric([queue.queue], getattr(queue, field))
        yield family


def _times(queues: Iterable[QueueFigures]) -> Iterator[Metric]:
    wait = HistogramMetricFamily("crossdock_job_wait_seconds", "Time from ready to leased.", labels=["queue"])
    run = HistogramMetricFamily("crossdock_job_run_seconds", "Time from leased to reported.", labels=["queue"])
    for queue in queues:
        wait.add_metric([queue.queue], _buckets(queue.wait), queue.wait.sum)
        run.add_metric([queue.queue], _buckets(queue.run), queue.run.sum)
    yield wait
    yield run


def _journal(journal: JournalFigures) -> Iterator[Metric]:
    yield _histogram("journal_sync_seconds", "Time to write and sync a journal entry.", journal.sync)
    yield _histogram("journal_entry_bytes", "Size of a journal entry.", journal.entry_bytes)
    yield _histogram("journal_entry_events", "Events in a journal entry.", journal.entry_events)
    yield CounterMetricFamily("crossdock_journal_written_bytes", "Bytes of journal entries.", journal.written_bytes)
    yield _gauge("journal_tail_bytes", "Journal since the last snapshot.", journal.tail_bytes)
    yield _gauge("journal_tail_events", "Events in the journal since the last snapshot.", journal.tail_events)


def _lake(server: ServerFigures) -> Iterator[Metric]:
    if server.lake is not None:
        yield _gauge("lake_lag_seconds", "Time since the lake made progress while it is behind.", server.lake.lag_s)
        yield _gauge("lake_lag_bytes", "Journal that the lake has not read yet.", server.lake.lag_bytes)


def _protocols(server: ServerFigures, http: dict[str, int]) -> Iterator[Metric]:
    connections = GaugeMetricFamily("crossdock_connections", "Open connections.", labels=["protocol"])
    commands = CounterMetricFamily("crossdock_commands", "Commands of clients.", labels=["protocol"])
    errors = CounterMetricFamily("crossdock_command_errors", "Error replies.", labels=["protocol"])
    for each in server.protocols:
        if each.protocol == PROTOCOL:
            each = structs.replace(each, **http)
        for family, value in ((connections, each.connections), (commands, each.commands), (errors, each.errors)):
            if value is not None:
                family.add_metric([each.protocol], value)
    yield connections
    yield commands
    yield errors


def _histogram(name: str, text: str, distribution: Distribution) -> Metric:
    family = HistogramMetricFamily(f"crossdock_{name}", text)
    family.add_metric([], _buckets(distribution), distribution.sum)
    return family


def _buckets(distribution: Distribution) -> list[tuple[str, float]]:
    return list(zip([*(f"{bound:g}" for bound in distribution.bounds), "+Inf"], distribution.counts, strict=True))


def _own_memory() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES


@get("/metrics", include_in_schema=False)
async def metrics(state: State) -> Response[bytes]:
    """One request to the server. Of this process there are its memory and the traffic of HTTP."""
    reply: bytes = await state.admin.ask_raw("metrics")
    registry = CollectorRegistry()
    registry.register(ServerCollector(_decode(reply).metrics, state.traffic.counts()))
    return Response(generate_latest(registry), headers={"content-type": CONTENT_TYPE_LATEST})


handlers: list[Any] = [metrics]
