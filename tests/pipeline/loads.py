"""A mixed load through all protocols of an engine over several days. Jobs of each protocol are worked through the
others, with all kinds of outcome. All random choices come from one seed."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

from crossdock.client.errors import Refused
from crossdock.model.commands.admin import Reroute
from crossdock.model.events import AnyEvent
from tests.support.all_protocols import AllProtocols, InProcess
from tests.support.peer import Peer
from tests.support.qless_peer import ViaQless

QUEUES: Final = ("mail", "billing", "q")


def work(peer: Peer, *queues: str) -> None:
    """Push and settle one job in each queue."""
    for queue in queues:
        peer.push(queue, {})
        got = peer.fetch(queue)
        assert got is not None and peer.succeed(got.ident)


class Elsewhere(ViaQless):
    """A qless worker whose clock is some hours off. Its statistics count for the day of its own clock."""

    hours = -7.25

    def _time(self) -> str:
        seconds, micros = self.request("TIME")
        return f"{int(seconds) + self.hours * 3_600:.0f}.{int(micros):06d}"


class MixedLoad:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.all_protocols = AllProtocols()
        self.qless = self.all_protocols.qless()
        self.peers: list[Peer] = [
            self.qless,
            self.all_protocols.workq(),
            self.all_protocols.masenko(),
            self.all_protocols.faktory(),
        ]
        self.peers.append(Elsewhere(InProcess(self.all_protocols.dispatcher, self.all_protocols.protocols["redis"])))
        self._acts: list[tuple[int, Callable[[], object]]] = [
            (10, self.push),
            (14, self.work),
            (2, self.fail_for_good),
            (1, self.cancel_failed),
            (1, self.put_failed_again),
            (1, self.unfail),
            (1, self.send_on),
            (1, self.lose),
            (1, self.rest),
            (1, self.depend),
            (1, self.move),
        ]

    @property
    def events(self) -> list[AnyEvent]:
        return self.all_protocols.dispatcher.events

    def go(self, acts: int) -> None:
        weights = [weight for weight, _ in self._acts]
        for _ in range(acts):
            [(_, act)] = self.random.choices(self._acts, weights)
            act()
            self.all_protocols.dispatcher.advance(
                self.random.choice([0.001, 0.3, 1.7, 59.9, 400.0]) * self.random.random()
            )

    def push(self) -> None:
        self.random.choice(self.peers).push(self.random.choice(QUEUES), ["payload"])

    def work(self) -> None:
        peer = self.random.choice(self.peers)
        got = peer.fetch(self.random.choice(QUEUES))
        if got is not None:
            self.all_protocols.dispatcher.advance(self.random.expovariate(1 / 20))
            settle = peer.fail if self.random.random() < 0.3 else peer.succeed
            settle(got.ident)

    def fail_for_good(self) -> None:
        got = self.qless.fetch(self.random.choice(QUEUES))
        if got is not None:
            self._try("fail", got.ident, self.qless.name, f"group-{self.random.randrange(3)}", "it did not work")

    def cancel_failed(self) -> None:
        for jid in self._failed():
            self._try("cancel", jid)

    def put_failed_again(self) -> None:
        for jid in self._failed():
            self._try("put", self.qless.name, self.random.choice(QUEUES), jid, "Q", "{}", 0)

    def unfail(self) -> None:
        self._try("unfail", self.random.choice(QUEUES), "group-1", 2)

    def send_on(self) -> None:
        got = self.qless.fetch("mail")
        if got is not None:
            self.all_protocols.dispatcher.advance(self.random.expovariate(1 / 5))
            self._try("complete", got.ident, self.qless.name, "mail", "{}", "next", "billing")

    def lose(self) -> None:
        """A worker is lost, and its lease expires."""
        if self.random.choice(self.peers).fetch(self.random.choice(QUEUES)) is not None:
            self.all_protocols.dispatcher.advance(self.random.choice([70.0, 2_000.0]))

    def rest(self) -> None:
        self.all_protocols.dispatcher.advance(self.random.choice([3_600.0, 40_000.0, 90_000.0]) * self.random.random())

    def depend(self) -> None:
        first = self.qless.push("mail", {})
        self.qless.push("mail", {}, depends=f'["{first}"]')

    def move(self) -> None:
        """An operator moves some jobs of any protocol to another queue."""
        waiting = self.all_protocols.dispatcher.state.jobs
        some = self.random.sample(list(waiting), min(3, len(waiting)))
        self.all_protocols.dispatcher.do(Reroute("control", self.random.choice(QUEUES), some))

    def _failed(self) -> list[str]:
        jobs = self.all_protocols.dispatcher.state.jobs.values()
        failed = [job.jid for job in jobs if job.state.name == "FAILED" and job.origin == "qless"]
        return failed[:1]

    def _try(self, *words: object) -> None:
        with suppress(Refused):
            self.qless.call(*map(str, words))
