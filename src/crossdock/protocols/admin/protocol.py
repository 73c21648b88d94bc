"""The control door: the operator's way in, on a UNIX socket of mode 0600. Who may open it may do everything."""

from collections.abc import Callable

from crossdock.protocols.admin.plans import PlanSpec
from crossdock.protocols.admin.server_status import House
from crossdock.protocols.admin.session import AdminSession
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.worker_registry import WorkerRegistry

NAME = "control"


class AdminProtocol:
    name = NAME
    handshake_s = 5.0  #: a peer that says nothing for so long is not the command line

    def __init__(self, house: House, workers: WorkerRegistry | None, plan_spec: PlanSpec) -> None:
        self.house = house
        self.workers = WorkerRegistry() if workers is None else workers  #: the registry of the Faktory door
        self._plan_spec = plan_spec

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> AdminSession:
        return AdminSession(dispatcher, self.house, self.workers, self._plan_spec)

    def tick(self, dispatcher: Dispatcher) -> None:
        """Nothing to watch: all it shows belongs to others."""
