"""All protocols on one engine in this process with a manual clock. The peers of `peers.py` connect to it."""

from collections.abc import Callable
from typing import Final

from crossdock.client.errors import Broken
from crossdock.engine.qless.catch_up import GRACE_S
from crossdock.model.commands.qless import CatchUp
from crossdock.model.commands.resqu import SetMapping
from crossdock.protocols.base import WireProtocol as AnyProtocol
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support import conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.masenko_peer import MasenkoPeer
from tests.support.peer import Peer
from tests.support.peers import PEERS, ViaFaktory, ViaMasenko, ViaWorkq
from tests.support.qless_peer import ViaQless
from tests.support.resqu_peer import ViaResqu


def _redis(dispatcher: PlainDispatcher) -> RedisProtocol:
    qless = Qless()
    dispatcher.herald = qless.publish_events
    resqu = Resqu()
    return RedisProtocol(libraries=(qless.library, resqu.library), views=(qless.view, *resqu.views))


_BUILT: Final[dict[str, Callable[[PlainDispatcher], AnyProtocol]]] = {
    "faktory": conversation.ClockedFaktory,
    "workq": lambda dispatcher: WorkqProtocol(),
    "masenko": lambda dispatcher: MasenkoProtocol(heartbeat_s=1e6),  # the manual clock passes days without a request
    "redis": _redis,
}


class InProcess:
    """A wire without a socket. A read with no data available advances the clock as far as the server would wait."""

    def __init__(self, dispatcher: PlainDispatcher, protocol: AnyProtocol) -> None:
        kind = MasenkoPeer if isinstance(protocol, MasenkoProtocol) else conversation.Peer
        self.connection: conversation.Peer = kind(dispatcher, protocol)  # type: ignore[arg-type]
        self._dispatcher = dispatcher

    def send(self, data: bytes) -> None:
        self.connection.send(data)

    def line(self) -> bytes:
        said = self.connection.said
        while b"\n" not in said:
            if not self.connection.is_waiting:
                raise Broken(f"nothing follows {bytes(said)!r}")
            self._dispatcher.advance(self.connection.until - self._dispatcher.now.steady)
        line, _, _ = bytes(said).partition(b"\n")
        del said[: len(line) + 1]
        return line.removesuffix(b"\r")

    def block(self, size: int) -> bytes:
        said = self.connection.said
        block, end = bytes(said[:size]), bytes(said[size : size + 2])
        assert end == b"\r\n", f"expected a block of {size} bytes: {bytes(said)!r}"
        del said[: size + 2]
        return block

    def close(self) -> None:
        self.connection.close()


class AllProtocols:
    def __init__(self, dispatcher: PlainDispatcher | None = None) -> None:
        self.dispatcher = dispatcher or PlainDispatcher()
        self.protocols = {name: build(self.dispatcher) for name, build in _BUILT.items()}

    def peer(self, protocol: str, name: str = "") -> Peer:
        return PEERS[protocol](InProcess(self.dispatcher, self.protocols[PEERS[protocol].listener or protocol]), name)

    def faktory(self, name: str = "") -> ViaFaktory:
        return ViaFaktory(InProcess(self.dispatcher, self.protocols["faktory"]), name)

    def workq(self) -> ViaWorkq:
        return ViaWorkq(InProcess(self.dispatcher, self.protocols["workq"]))

    def masenko(self) -> ViaMasenko:
        return ViaMasenko(InProcess(self.dispatcher, self.protocols["masenko"]))

    def resqu(self, name: str = "") -> ViaResqu:
        """A Resqu peer whose job names are also the names of their queues."""
        self.dispatcher.do(SetMapping({"default": {"q": "q"}}, {"default": {"q": "q"}}))
        return ViaResqu(InProcess(self.dispatcher, self.protocols["redis"]), name)

    def qless(self) -> ViaQless:
        return ViaQless(InProcess(self.dispatcher, self.protocols["redis"]))

    def lose(self, peer: Peer) -> None:
        """Disconnect the peer's worker for good: its connection ends, then its lease."""
        peer.close()
        if not peer.bound:
            self.lease_expiry(peer.lease_s)

    def lease_expiry(self, seconds: float) -> None:
        """Advance the clock by `seconds` and expire leases.

        qless evaluates its leases lazily, on the next request to the queue: first to warn the worker, then, after the
        grace period, to expire the lease.
        """
        self.dispatcher.advance(seconds)
        if any(job.lease is not None and job.lease.late is not None for job in self.dispatcher.state.jobs.values()):
            self.dispatcher.do(CatchUp("", "q", None, 10))
            self.dispatcher.advance(GRACE_S)
            self.dispatcher.do(CatchUp("", "q", None, 10))

    def restarted(self) -> "AllProtocols":
        return AllProtocols(self.dispatcher.restarted())
