"""One control connection: a line in, a line out. Whoever got so far is the operator; there is no handshake."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.protocols.admin import actions, failures, labels, messages, reads, schedules
from crossdock.protocols.admin.messages import Invalid, Request, error
from crossdock.protocols.admin.schedules import PlanSpec
from crossdock.protocols.admin.server_status import House
from crossdock.protocols.base import Answer, Close, Dispatcher
from crossdock.protocols.line_reader import Lines
from crossdock.protocols.worker_registry import WorkerRegistry

LINE_BYTES: Final = 1024 * 1024
_TOO_LONG: Final = "a line must not be longer than 1 MiB; send less at once"


class AdminSession:
    def __init__(
        self,
        dispatcher: Dispatcher,
        house: House,
        workers: WorkerRegistry,
        plan_spec: PlanSpec,
        settings_file: str,
    ) -> None:
        self._dispatcher = dispatcher
        self._settings_file = settings_file
        self._house = house
        self._workers = workers
        self._plan_spec = plan_spec
        self._lines = Lines(LINE_BYTES)
        self.receive = self._lines.receive
        self.identified = True

    def greeting(self) -> bytes:
        return b""

    def handle(self, line: bytes) -> Answer:
        try:
            request = messages.read(line)
            return _VERBS[type(request)](self, request)
        except Invalid as wrong:
            return error(str(wrong))

    def broken(self) -> Close | None:
        return Close(error(_TOO_LONG)) if self._lines.overrun else None

    def crowded(self, connections: int) -> None:
        """Let in: a server without a free connection is one the operator has to look at."""

    def farewell(self) -> bytes:
        return error("the server stops; ask again when it is back")

    def closed(self) -> None:
        """Nothing is remembered of a connection."""

    def _status(self, request: messages.Status) -> Answer:
        return reads.status(self._dispatcher, self._house, self._workers)

    def _workers_page(self, request: messages.Workers) -> Answer:
        return reads.workers(self._dispatcher, self._workers, request)

    def _schedule_add(self, request: messages.ScheduleAdd) -> Answer:
        return schedules.add(self._dispatcher, self._plan_spec, request)

    def _schedule_edit(self, request: messages.ScheduleEdit) -> Answer:
        return schedules.edit(self._dispatcher, self._plan_spec, self._settings_file, request)

    def _schedule_remove(self, request: messages.ScheduleRemove) -> Answer:
        return schedules.remove(self._dispatcher, self._settings_file, request)

    def _release(self, request: messages.Release) -> Answer:
        return actions.release(self._dispatcher, self._workers, request)

    def _signal(self, request: messages.Quiet | messages.Terminate) -> Answer:
        return actions.signal(self._dispatcher, self._workers, request)


def _on_dispatcher(verb: Callable[[Dispatcher, Any], Answer]) -> Callable[[AdminSession, Any], Answer]:
    return lambda session, request: verb(session._dispatcher, request)


_VERBS: Final[dict[type[Request], Callable[[AdminSession, Any], Answer]]] = {
    messages.Status: AdminSession._status,
    messages.Queues: _on_dispatcher(reads.queues),
    messages.Queue: _on_dispatcher(reads.queue),
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
    messages.Job: _on_dispatcher(reads.job),
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
    messages.Failures: _on_dispatcher(failures.failures),
}
