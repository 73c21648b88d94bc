"""The admin protocol, on a UNIX socket of mode 0600. A client that may open the socket may do everything."""

from collections.abc import Callable
from typing import Final

from crossdock.protocols.admin.journal_requests import JournalKeeper
from crossdock.protocols.admin.measurements import Demand, StatusSource
from crossdock.protocols.admin.reload import Reloader
from crossdock.protocols.admin.schedule_changes import PlanSpec
from crossdock.protocols.admin.session import AdminSession
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.worker_registry import WorkerRegistry

NAME: Final = "admin"


class AdminProtocol:
    name = NAME
    handshake_s = 5.0  #: deadline of the first request; the command line sends it at once

    def __init__(
        self,
        status: StatusSource,
        workers: WorkerRegistry | None,
        plan_spec: PlanSpec,
        demand: Demand,
        settings_file: str = "",
        journal: JournalKeeper | None = None,
        reloader: Reloader | None = None,
    ) -> None:
        self._status = status
        self.workers = WorkerRegistry() if workers is None else workers  #: the registry of the Faktory protocol
        self._plan_spec = plan_spec
        self._demand = demand
        self._settings_file = settings_file  #: path, for errors about schedules that are defined in it
        self._journal = journal
        self.commands = 0
        self.errors = 0
        self._reloader = reloader

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> AdminSession:
        return AdminSession(
            dispatcher,
            status=self._status,
            workers=self.workers,
            plan_spec=self._plan_spec,
            demand=self._demand,
            settings_file=self._settings_file,
            journal=self._journal,
            reloader=self._reloader,
            count_command=self._count_command,
        )

    def _count_command(self) -> None:
        self.commands += 1

    def tick(self, dispatcher: Dispatcher) -> None:
        """Nothing: the protocol has no timers."""
