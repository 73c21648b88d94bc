"""A connection to the Masenko protocol without a socket, with an idle timeout as the server applies it."""

from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.masenko.session import MasenkoSession
from tests.support.conversation import Peer
from tests.support.dispatcher import NEVER, PlainDispatcher


class MasenkoPeer(Peer):
    session: MasenkoSession
    end = b"\n"

    def __init__(self, dispatcher: PlainDispatcher, protocol: MasenkoProtocol) -> None:
        self._deadline = NEVER
        super().__init__(dispatcher, protocol)

    @property
    def until(self) -> float:
        """Monotonic time at which its wait ends, or else its idle timeout."""
        if self.is_closed:
            return NEVER
        return self._deadline if self.is_waiting else self.session.last_active + self.session.idle_timeout_s

    @until.setter
    def until(self, deadline: float) -> None:
        self._deadline = deadline

    def late(self) -> None:
        if self.is_waiting:
            super().late()
        else:
            self._take(self.session.close_idle())
