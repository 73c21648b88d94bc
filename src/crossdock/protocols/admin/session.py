"""One admin connection: a reply to each line. There is no handshake: access to the socket is the permission."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.protocols.admin import (
    actions,
    audit,
    hold_ups,
    job_graph,
    journal_requests,
    labels,
    messages,
    metrics,
    push,
    rate_limits,
    reads,
    schedule_changes,
    schedules,
)
from crossdock.protocols.admin.codec import error, read
from crossdock.protocols.admin.journal_requests import JournalKeeper
from crossdock.protocols.admin.measurements import Demand, StatusSource
from crossdock.protocols.admin.messages import Invalid, Request
from crossdock.protocols.admin.reload import Reloader, reload
from crossdock.protocols.admin.schedule_changes import PlanSpec
from crossdock.protocols.base import Answer, Close, Dispatcher, Report, unreported
from crossdock.protocols.line_reader import Lines
from crossdock.protocols.worker_registry import WorkerRegistry

LINE_BYTES: Final = 1024 * 1024
_TOO_LONG: Final = "a line must not be longer than 1 MiB; split the request"


class AdminSession:
    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        status: StatusSource,
        workers: WorkerRegistry,
        plan_spec: PlanSpec,
        demand: Demand,
        settings_file: str,
        journal: JournalKeeper | None = None,
        count_command: Callable[[], None] = lambda: None,
        reloader: Reloader | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings_file = settings_file
        self._status_source = status
        self._workers = workers
        self._plan_spec = plan_spec
        self._demand = demand
        self._journal = journal
        self._count_command = count_command
        self._reloader = reloader
        self._lines = Lines(LINE_BYTES)
        self.receive = self._lines.receive
        self.report: Report = unreported
        self.identified = True

    def greeting(self) -> bytes:
        return b""

    def handle(self, line: bytes) -> Answer:
        self._count_command()
        try:
            request = read(line)
            answer = _VERBS[type(request)](self, request)
            audit.record_reply(self._dispatcher, request, answer)
            return answer
        except Invalid as wrong:
            return error(str(wrong))

    def broken(self) -> Close | None:
        if not self._lines.overrun:
            return None
        self.report("protocol-error", _TOO_LONG)
        return Close(error(_TOO_LONG))

    def crowded(self, connections: int) -> None:
        """Stays open: the operator must be able to examine a server that has no free connection."""

    def farewell(self) -> bytes:
        return error("the server is stopping; try again when it is back")

    def closed(self) -> None:
        """Nothing: a session has no state."""

    def _status(self, request: messages.Status) -> Answer:
        return reads.status(self._dispatcher, self._status_source, self._workers)

    def _workers_page(self, request: messages.Workers) -> Answer:
        return reads.workers(self._dispatcher, self._workers, self._demand, request)

    def _schedule_add(self, request: messages.ScheduleAdd) -> Answer:
        return schedule_changes.add(self._dispatcher, self._plan_spec, request)

    def _schedule_edit(self, request: messages.ScheduleEdit) -> Answer:
        return schedule_changes.edit(self._dispatcher, self._plan_spec, self._settings_file, request)

    def _schedule_remove(self, request: messages.ScheduleRemove) -> Answer:
        return schedule_changes.remove(self._dispatcher, self._settings_file, request)

    def _release(self, request: messages.Release) -> Answer:
        return actions.release(self._dispatcher, self._workers, request)

    def _export(self, request: messages.Export) -> Answer:
        return journal_requests.export(self._keeper())

    def _compact(self, request: messages.Compact) -> Answer:
        return journal_requests.compact(self._keeper(), request)

    def _keeper(self) -> JournalKeeper:
        if self._journal is None:
            raise Invalid("this server has no journal")
        return self._journal

    def _reload(self, request: messages.Reload) -> Answer:
        return reload(self._reloader, request)

    def _signal(self, request: messages.Quiet | messages.Terminate) -> Answer:
        return actions.signal(self._dispatcher, self._workers, request)


def _on_demand(verb: Callable[[Dispatcher, Demand, Any], Answer]) -> Callable[[AdminSession, Any], Answer]:
    return lambda session, request: verb(session._dispatcher, session._demand, request)


def _on_dispatcher(verb: Callable[[Dispatcher, Any], Answer]) -> Callable[[AdminSession, Any], Answer]:
    return lambda session, request: verb(session._dispatcher, request)


def _on_source(verb: Callable[[Dispatcher, StatusSource, Any], Answer]) -> Callable[[AdminSession, Any], Answer]:
    return lambda session, request: verb(session._dispatcher, session._status_source, request)


_VERBS: Final[dict[type[Request], Callable[[AdminSession, Any], Answer]]] = {
    messages.Status: AdminSession._status,
    messages.Metrics: _on_source(metrics.metrics),
    messages.RateHistory: _on_source(metrics.rates),
    messages.Protocols: _on_source(metrics.protocols),
    messages.Settings: _on_source(metrics.settings),
    messages.Warnings: _on_source(metrics.warnings),
    messages.Queues: lambda session, request: reads.queues(
        session._dispatcher, session._status_source, session._demand, request
    ),
    messages.Queue: lambda session, request: reads.queue(
        session._dispatcher, session._status_source, session._demand, request
    ),
    messages.Workers: AdminSession._workers_page,
    messages.Batches: _on_dispatcher(reads.batches),
    messages.Batch: _on_dispatcher(reads.batch),
    messages.Schedules: _on_dispatcher(schedules.schedules),
    messages.ScheduleShow: _on_dispatcher(schedules.schedule),
    messages.ScheduleAdd: AdminSession._schedule_add,
    messages.ScheduleEdit: AdminSession._schedule_edit,
    messages.ScheduleRemove: AdminSession._schedule_remove,
    messages.ScheduleRun: _on_dispatcher(schedules.run),
    messages.Jobs: _on_dispatcher(reads.jobs),
    messages.Count: _on_dispatcher(reads.count),
    messages.Job: _on_demand(reads.job),
    messages.Graph: _on_dispatcher(job_graph.graph),
    messages.States: _on_dispatcher(reads.states),
    messages.Retry: _on_dispatcher(actions.retry),
    messages.Kill: _on_dispatcher(actions.act),
    messages.Delete: _on_dispatcher(actions.act),
    messages.Quiet: AdminSession._signal,
    messages.Terminate: AdminSession._signal,
    messages.Pause: _on_dispatcher(actions.switch),
    messages.Resume: _on_dispatcher(actions.switch),
    messages.Move: _on_dispatcher(actions.act),
    messages.Release: AdminSession._release,
    messages.Tags: _on_dispatcher(labels.tags),
    messages.Tag: _on_dispatcher(labels.retag),
    messages.Untag: _on_dispatcher(labels.retag),
    messages.Tracked: _on_dispatcher(labels.tracked),
    messages.Track: _on_dispatcher(labels.track),
    messages.Untrack: _on_dispatcher(labels.untrack),
    messages.Failures: _on_dispatcher(reads.failures),
    messages.Audit: _on_dispatcher(audit.page),
    messages.Erase: _on_dispatcher(journal_requests.erase),
    messages.Export: AdminSession._export,
    messages.Compact: AdminSession._compact,
    messages.Cancel: _on_dispatcher(actions.act),
    messages.Push: _on_dispatcher(push.push),
    messages.Throttles: _on_dispatcher(hold_ups.throttles),
    messages.RateLimits: _on_dispatcher(rate_limits.rate_limits),
    messages.Overview: _on_demand(hold_ups.overview),
    messages.Reload: AdminSession._reload,
}
