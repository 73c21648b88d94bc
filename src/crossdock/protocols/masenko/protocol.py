"""The Masenko protocol: the state that its sessions share. It has no password, so it listens on loopback only."""

from collections.abc import Callable

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.masenko import messages
from crossdock.protocols.masenko.commands import skip_zero
from crossdock.protocols.masenko.messages import VIA
from crossdock.protocols.masenko.session import MasenkoSession
from crossdock.protocols.worker_names import WorkerNames


class MasenkoProtocol:
    name = VIA
    handshake_s = 0.0  #: there is none

    def __init__(self, *, heartbeat_s: float = 45.0, line_bytes: int = 16 * 1024 * 1024) -> None:
        self.heartbeat_s = heartbeat_s
        self.heartbeat_ns = round(heartbeat_s * 1e9)
        self.heartbeat = messages.show(self.heartbeat_ns)
        self.line_bytes = line_bytes
        self.worker_names = WorkerNames(VIA)
        self.commands = 0
        self.errors = 0

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> MasenkoSession:
        return MasenkoSession(self, dispatcher)

    def tick(self, dispatcher: Dispatcher) -> None:
        skip_zero(dispatcher)
