"""One control connection: a line in, a line out. Whoever got so far is the operator; there is no handshake."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.protocols.admin import actions, failures, labels, messages, plans, reads, recurring
from crossdock.protocols.admin import messages as r
from crossdock.protocols.admin.messages import Invalid, Request, error
from crossdock.protocols.admin.plans import PlanSpec
from crossdock.protocols.admin.server_status import House
from crossdock.protocols.base import Answer, Close, Dispatcher
from crossdock.protocols.line_reader import Lines
from crossdock.protocols.worker_registry import WorkerRegistry

LINE_BYTES: Final = 1024 * 1024
_TOO_LONG: Final = "a line must not be longer than 1 MiB; send less at once"


class AdminSession:
    def __init__(self, dispatcher: Dispatcher, house: House, workers: WorkerRegistry, plan_spec: PlanSpec) -> None:
        self._dispatcher = dispatcher
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

    def _plan_add(self, request: messages.PlanAdd) -> Answer:
        return plans.add(self._dispatcher, self._plan_spec, request)

    def _release(self, request: messages.Release) -> Answer:
        return actions.release(self._dispatcher, self._workers, request)

    def _signal(self, request: messages.Quiet | messages.Terminate) -> Answer:
        return actions.signal(self._dispatcher, self._workers, request)


def _on_desk(verb: Callable[[Dispatcher, Any], Answer]) -> Callable[[AdminSession, Any], Answer]:
    return lambda session, request: verb(session._dispatcher, request)


_VERBS: Final[dict[type[Request], Callable[[AdminSession, Any], Answer]]] = {
    messages.Status: AdminSession._status,
    messages.Queues: _on_desk(reads.queues),
    messages.Workers: AdminSession._workers_page,
    messages.Batches: _on_desk(reads.batches),
    messages.Cron: _on_desk(reads.cron),
    messages.Plans: _on_desk(plans.plans),
    messages.PlanAdd: AdminSession._plan_add,
    messages.PlanRm: _on_desk(plans.remove),
    messages.Jobs: _on_desk(reads.jobs),
    messages.Count: _on_desk(reads.count),
    messages.Job: _on_desk(reads.job),
    messages.Retry: _on_desk(actions.act),
    messages.Kill: _on_desk(actions.act),
    messages.Delete: _on_desk(actions.act),
    messages.Quiet: AdminSession._signal,
    messages.Terminate: AdminSession._signal,
    messages.Pause: _on_desk(actions.switch),
    messages.Resume: _on_desk(actions.switch),
    messages.Unfail: _on_desk(actions.act),
    messages.Move: _on_desk(actions.act),
    messages.Release: AdminSession._release,
    r.Tags: _on_desk(labels.tags),
    r.Tag: _on_desk(labels.retag),
    r.Untag: _on_desk(labels.retag),
    r.Tracked: _on_desk(labels.tracked),
    r.Track: _on_desk(labels.track),
    r.Untrack: _on_desk(labels.untrack),
    r.Failures: _on_desk(failures.failures),
    r.Recurring: _on_desk(recurring.recurring),
    r.Recur: _on_desk(recurring.recur),
    r.Unrecur: _on_desk(recurring.unrecur),
}
