"""The admin protocol, on a UNIX socket of mode 0600. A client that may open the socket may do everything."""

from collections.abc import Callable

from crossdock.protocols.admin.schedules import PlanSpec
from crossdock.protocols.admin.server_status import House
from crossdock.protocols.admin.session import AdminSession
from crossdock.protocols.base import Dispatcher
from crossdock.protocols.worker_registry import WorkerRegistry

NAME = "control"


class AdminProtocol:
    name = NAME
    handshake_s = 5.0  #: a peer that says nothing for so long is not the command line

    def __init__(
        self, house: House, workers: WorkerRegistry | None, plan_spec: PlanSpec, settings_file: str = ""
    ) -> None:
        self.house = house
        self.workers = WorkerRegistry() if workers is None else workers  #: the registry of the Faktory protocol
        self._plan_spec = plan_spec
        self._settings_file = settings_file  #: path, for errors about schedules that are defined in it

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> AdminSession:
        return AdminSession(dispatcher, self.house, self.workers, self._plan_spec, self._settings_file)

    def tick(self, dispatcher: Dispatcher) -> None:
        """Nothing to watch: all it shows belongs to others."""
