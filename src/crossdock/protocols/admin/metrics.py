"""Requests about the server's measurements: metrics for Prometheus, rates of the last hour, traffic, settings."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from crossdock.engine.queries.queues import queue_count
from crossdock.engine.queries.records import batches_by_name
from crossdock.engine.resqu import queries
from crossdock.protocols.admin import messages, views
from crossdock.protocols.admin.codec import reply
from crossdock.protocols.admin.job_counts import jobs_by_state
from crossdock.protocols.admin.measurements import QueueFigures, StatusSource
from crossdock.protocols.base import Dispatcher, Slices

#: Queues per slice: less than a millisecond.
_AT_ONCE: Final = 20


def metrics(dispatcher: Dispatcher, source: StatusSource, request: messages.Metrics) -> Slices:
    """Everything that the HTTP endpoint `/metrics` shows. `other` holds the queues that are not listed, so sums over
    all queues are complete."""
    queues: list[QueueFigures] = []
    for names in _some(source.busiest()):
        queues.extend(source.queue_figures(names))
        yield
    state = dispatcher.state
    figures: dict[str, Any] = {
        "now": views.when(dispatcher.now.wall),
        "states": jobs_by_state(state),
        "queue_count": queue_count(state),
        "batches": len(batches_by_name(state)) + len(queries.batches(state)),
        "queues": queues,
        "other": source.other_figures(),
        "server": source.figures(),
    }
    return reply({"metrics": figures})


def _some(names: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(list(names))
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def rates(dispatcher: Dispatcher, source: StatusSource, request: messages.RateHistory) -> bytes:
    """Null for a queue that is not among the busiest."""
    return reply({"rates": source.history(request.queue)})


def protocols(dispatcher: Dispatcher, source: StatusSource, request: messages.Protocols) -> bytes:
    return reply({"protocols": source.traffic()})


def settings(dispatcher: Dispatcher, source: StatusSource, request: messages.Settings) -> bytes:
    return reply({"settings": source.settings_in_effect()})


def warnings(dispatcher: Dispatcher, source: StatusSource, request: messages.Warnings) -> bytes:
    return reply({"warnings": source.warnings()})
