"""The scene that acts are drawn for: clients, what they know and what the server gave them."""

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
    """One client: what it was told to work on, and what the server remembers to have given to it."""

    worker: str
    via: str
    terms: c.LeaseTerms
    working: list[str] = field(default_factory=list)  #: jids; the client's own knowledge
    given: dict[str, list[LeaseRef]] = field(default_factory=dict)  #: by jid, the newest last; the server's

    def claim(self, jid: str) -> c.Claim:
        held = self.given.get(jid)
        return c.Claim(self.via, self.worker, held[-1] if held else None)

    def is_given(self, job: Job) -> None:
        assert job.lease is not None
        self.given.setdefault(job.jid, []).append((job.number, job.lease.token))

    def has_settled(self, jid: str) -> None:
        """The newest lease of that jid is over: it is remembered no longer."""
        held = self.given.pop(jid, [])
        if len(held) > 1:
            self.given[jid] = held[:-1]

    def hears(self, jid: str) -> None:
        """Its settlement was answered, well or not: it works on it no more."""
        if jid in self.working:
            self.working.remove(jid)

    def reconnect(self, state: EngineState | None) -> None:
        """The server was restarted. With its memory at hand it counts leases of this name as given."""
        self.given = {}
        if state is not None and self.worker:
            for _, number in state.by_state[State.LEASED]:
                if (job := state.jobs[number]).lease is not None and job.lease.worker == self.worker:
                    self.is_given(job)


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
    """Workers with a name and without, of each door's terms."""
    return [
        Client(
            f"w{n}" if random.random() < 0.8 else "",
            values.VIAS[int(random.random() * len(values.VIAS))],
            values.TERMS[int(random.random() * len(values.TERMS))],
        )
        for n in range(many)
    ]


Act = Callable[[Scene, Client], c.Command[Any] | None]
