"""All doors on one engine in this process, with a clock turned by hand: where the peers of `peers.py` meet."""

from collections.abc import Callable
from typing import Final

from crossdock.client.base import Broken
from crossdock.engine.qless.catch_up import GRACE_S
from crossdock.model.commands.qless import CatchUp
from crossdock.model.commands.resqu import SetMapping
from crossdock.protocols.base import WireProtocol as AnyDoor
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.redis.protocol import RedisProtocol
from crossdock.protocols.redis.qless.service import Qless
from crossdock.protocols.redis.resqu.service import Resqu
from crossdock.protocols.workq.protocol import WorkqProtocol
from tests.support import conversation
from tests.support.desk import PlainDesk
from tests.support.masenko_peer import MasenkoPeer
from tests.support.peer import Peer
from tests.support.peers import PEERS, ViaFaktory, ViaMasenko, ViaWorkq
from tests.support.qless_peer import ViaQless
from tests.support.resqu_peer import ViaResqu


def _redis(desk: PlainDesk) -> RedisProtocol:
    qless = Qless()
    desk.herald = qless.tell
    resqu = Resqu()
    return RedisProtocol(libraries=(qless.library, resqu.library), views=(qless.view, *resqu.views))


_BUILT: Final[dict[str, Callable[[PlainDesk], AnyDoor]]] = {
    "faktory": conversation.Door,
    "workq": lambda desk: WorkqProtocol(),
    "masenko": lambda desk: MasenkoProtocol(heartbeat_s=1e6),  # days pass here while nobody speaks
    "redis": _redis,
}


class InProcess:
    """A wire. Whoever reads while nothing was said lets the time pass that the server would let it wait."""

    def __init__(self, desk: PlainDesk, door: AnyDoor) -> None:
        kind = MasenkoPeer if isinstance(door, MasenkoProtocol) else conversation.Peer
        self.connection: conversation.Peer = kind(desk, door)  # type: ignore[arg-type]
        self._desk = desk

    def send(self, data: bytes) -> None:
        self.connection.send(data)

    def line(self) -> bytes:
        said = self.connection.said
        while b"\n" not in said:
            if not self.connection.is_waiting:
                raise Broken(f"nothing follows {bytes(said)!r}")
            self._desk.advance(self.connection.until - self._desk.now.steady)
        line, _, _ = bytes(said).partition(b"\n")
        del said[: len(line) + 1]
        return line.removesuffix(b"\r")

    def block(self, size: int) -> bytes:
        said = self.connection.said
        block, end = bytes(said[:size]), bytes(said[size : size + 2])
        assert end == b"\r\n", f"no block of {size} bytes: {bytes(said)!r}"
        del said[: size + 2]
        return block

    def close(self) -> None:
        self.connection.close()


class Floor:
    def __init__(self, desk: PlainDesk | None = None) -> None:
        self.desk = desk or PlainDesk()
        self.doors = {name: build(self.desk) for name, build in _BUILT.items()}

    def peer(self, door: str, name: str = "") -> Peer:
        return PEERS[door](InProcess(self.desk, self.doors[PEERS[door].listens or door]), name)

    def faktory(self, name: str = "") -> ViaFaktory:
        return ViaFaktory(InProcess(self.desk, self.doors["faktory"]), name)

    def workq(self) -> ViaWorkq:
        return ViaWorkq(InProcess(self.desk, self.doors["workq"]))

    def masenko(self) -> ViaMasenko:
        return ViaMasenko(InProcess(self.desk, self.doors["masenko"]))

    def resqu(self, name: str = "") -> ViaResqu:
        """The name of a job is that of its queue."""
        self.desk.do(SetMapping({"default": {"q": "q"}}, {"default": {"q": "q"}}))
        return ViaResqu(InProcess(self.desk, self.doors["redis"]), name)

    def qless(self) -> ViaQless:
        return ViaQless(InProcess(self.desk, self.doors["redis"]))

    def lose(self, peer: Peer) -> None:
        """The worker of a job is never heard of again: its connection ends, and then its lease."""
        peer.close()
        if not peer.bound:
            self.lapse(peer.lease_s)

    def lapse(self, seconds: float) -> None:
        """So much time passes, and leases end with it. Those of qless' jobs do when somebody asks their queue: once,
        and again when the worker that was warned has had its time."""
        self.desk.advance(seconds)
        if any(job.lease is not None and job.lease.late is not None for job in self.desk.memory.jobs.values()):
            self.desk.do(CatchUp("", "q", None, 10))
            self.desk.advance(GRACE_S)
            self.desk.do(CatchUp("", "q", None, 10))

    def restarted(self) -> "Floor":
        return Floor(self.desk.restarted())
