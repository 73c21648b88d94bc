"""The Workq protocol: the state that its sessions share. It has no password, so it listens on loopback only."""

from collections.abc import Callable

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.worker_names import WorkerNames
from crossdock.protocols.workq.session import VIA, WorkqSession


class WorkqProtocol:
    name = VIA
    handshake_s = 0.0  #: there is none

    def __init__(self, *, lease_ttr: bool = False) -> None:
        self.lease_ttr = lease_ttr  #: add the TTR to a lease, as Workq 0.2.0 and later do (workq.md section 10, row 1)
        self.worker_names = WorkerNames(VIA)
        self.connections = 0
        self.commands = 0
        self.errors = 0
        self.started = 0.0  #: wall

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> WorkqSession:
        self.tick(dispatcher)
        self.connections += 1
        return WorkqSession(self, dispatcher)

    def tick(self, dispatcher: Dispatcher) -> None:
        if not self.started:
            self.started = dispatcher.now.wall
