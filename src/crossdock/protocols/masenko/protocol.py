"""The Masenko door: what its sessions share. There is no password: beyond this machine it must not listen."""

from collections.abc import Callable

from crossdock.protocols.base import Dispatcher
from crossdock.protocols.masenko import messages
from crossdock.protocols.masenko.commands import skip_zero
from crossdock.protocols.masenko.messages import VIA
from crossdock.protocols.masenko.session import MasenkoSession


class MasenkoProtocol:
    name = VIA
    handshake_s = 0.0  #: there is none

    def __init__(self, *, heartbeat_s: float = 45.0, line_bytes: int = 16 * 1024 * 1024) -> None:
        self.heartbeat_s = heartbeat_s
        self.heartbeat_ns = round(heartbeat_s * 1e9)
        self.heartbeat = messages.show(self.heartbeat_ns)
        self.line_bytes = line_bytes

    def session(self, dispatcher: Dispatcher, hang_up: Callable[[], None]) -> MasenkoSession:
        return MasenkoSession(self, dispatcher)

    def tick(self, dispatcher: Dispatcher) -> None:
        skip_zero(dispatcher)
