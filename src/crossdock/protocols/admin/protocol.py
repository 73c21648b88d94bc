"""The control door: the operator's way in, on a UNIX socket of mode 0600. Who may open it may do everything."""

from collections.abc import Callable

from crossdock.protocols.admin.server_status import House
from crossdock.protocols.admin.session import ControlSession
from crossdock.protocols.base import Desk
from crossdock.protocols.redis.resqu.specs import Specs
from crossdock.protocols.worker_registry import Workers

NAME = "control"


class ControlDoor:
    name = NAME
    handshake_s = 5.0  #: a peer that says nothing for so long is not the command line

    def __init__(self, house: House, workers: Workers | None = None, specs: Specs | None = None) -> None:
        self.house = house
        self.workers = Workers() if workers is None else workers  #: the registry of the Faktory door
        self._specs = specs or Specs()  #: of the jobs of plans

    def session(self, desk: Desk, hang_up: Callable[[], None]) -> ControlSession:
        return ControlSession(desk, self.house, self.workers, self._specs)

    def tick(self, desk: Desk) -> None:
        """Nothing to watch: all it shows belongs to others."""
