"""The clients that commands are drawn for, what they know, and the leases that the server has for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from crossdock.engine.state import EngineState
from crossdock.model.commands import core as c
from crossdock.model.job import Job, LeaseRef
from crossdock.model.states import State
from tests.model import values
from tests.model.rig import FakeClock

T = TypeVar("T")
DAY: Final = 86_400.0


@dataclass
class Client:
    """One client: the jobs that it works on, and the leases that its connection has at the server."""

    worker: str
    via: str
    terms: c.LeaseTerms
    working: list[str] = field(default_factory=list)  #: jids, as the client knows them
    #: By jid, the newest last, as the server knows them
    leases: dict[str, list[LeaseRef]] = field(default_factory=dict)

    def claim(self, jid: str) -> c.Claim:
        held = self.leases.get(jid)
        return c.Claim(self.via, self.worker, held[-1] if held else None)

    def record_lease(self, job: Job) -> None:
        assert job.lease is not None
        self.leases.setdefault(job.jid, []).append((job.number, job.lease.token))

    def forget_lease(self, jid: str) -> None:
        """Forgets the newest lease of a jid after it was settled."""
        held = self.leases.pop(jid, [])
        if len(held) > 1:
            self.leases[jid] = held[:-1]

    def stop_working(self, jid: str) -> None:
        """The reply to a settlement arrived, whatever it was."""
        if jid in self.working:
            self.working.remove(jid)

    def reconnect(self, state: EngineState | None) -> None:
        """Reconnects after a restart of the server. With a state, leases of this worker's name are restored."""
        self.leases = {}
        if state is not None and self.worker:
            for _, number in state.by_state[State.LEASED]:
                if (job := state.jobs[number]).lease is not None and job.lease.worker == self.worker:
                    self.record_lease(job)


@dataclass
class Scene:
    random: Random
    clock: FakeClock
    state: EngineState
    clients: list[Client]
    jids: int = 0
    payloads: int = 0
    groups: int = 0

    def one_of(self, of: Sequence[T]) -> T:
        return of[int(self.random.random() * len(of))]

    def chance(self, of_one: float) -> bool:
        return self.random.random() < of_one


def clients(random: Random, many: int) -> list[Client]:
    """Clients with and without a worker name, with the lease terms of each protocol."""
    return [
        Client(
            f"w{n}" if random.random() < 0.8 else "",
            values.VIAS[int(random.random() * len(values.VIAS))],
            values.TERMS[int(random.random() * len(values.TERMS))],
        )
        for n in range(many)
    ]


Act = Callable[[Scene, Client], c.Command[Any] | None]
