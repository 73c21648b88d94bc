"""A random walk over the engine's commands, compared with the reference model."""

import os
from random import Random
from typing import Any, Final

from crossdock.model.commands import core as c
from crossdock.model.events.codec import decode_entry
from tests.model import engine_draws, invariants, visible
from tests.model.acts.drawing import draw
from tests.model.acts.scene import Client, Scene, clients
from tests.model.reference.commands import Reference
from tests.model.rig import Rig, fold

STEPS: Final = int(os.environ.get("CROSSDOCK_WALK_STEPS", "4000"))


#: Comparing the whole state costs more than a step. The outcome of every step is compared anyway.
COMPARE_EVERY: Final = 12


DAY: Final = 86_400.0


class Walk:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rig = Rig()
        self.model = Reference()
        self.scene = Scene(self.random, self.rig.clock, self.rig.state, clients(self.random, 12))

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.85:
            self.do(*draw(self.scene))
        elif chance < 0.98:
            self.rig.clock.pass_by(self.random.choice((0.001, 0.05, 0.5, 5.0, 40.0)))
        elif chance < 0.99:
            self.rig.clock.pass_by(self.random.choice((900.0, 3_600.0, DAY, 32 * DAY, 181 * DAY)))
        elif chance < 0.995:
            self.rig.clock.jump(self.random.choice((-DAY, -3_600.0, -2.0, 2.0, 3_600.0, DAY)))
        else:
            self.restart()

    def do(self, client: Client, command: c.Command[Any]) -> None:
        self.rig.die.value = int(self.random.random() * 30)
        so_far = len(self.rig.events)
        outcome = self.rig.do(command)
        draws = engine_draws.of(self.rig.events[so_far:], self.rig.die.value)
        expected = self.model.do(command, self.rig.clock.now, draws)
        if isinstance(command, c.LeaseNext) and outcome is not None:
            client.record_lease(outcome)
            client.working.append(outcome.jid)
            outcome = (outcome.number, outcome.lease.token)
        elif isinstance(command, c.Succeed | c.Fail):
            client.stop_working(command.jid)
            if outcome:
                client.forget_lease(command.jid)
        assert outcome == expected
        assert {topic for topic in self.rig.ready_queues if isinstance(topic, str)} == self.model.woken

    def restart(self) -> None:
        if not self.rig.batches:
            return
        last = decode_entry(self.rig.batches[-1])
        self.rig.clock.restart(last.wall, last.steady, last.events[-1].at)
        self.rig.adopt(fold(self.rig.batches))
        self.scene.state = self.rig.state
        for client in self.scene.clients:
            client.reconnect(self.rig.state if self.random.random() < 0.5 else None)
        self.do(self.scene.clients[0], c.Start())

    def compare(self) -> None:
        assert visible.of_engine(self.rig.state) == visible.of_reference(self.model)
        assert self.rig.engine.due_in(self.rig.clock.now) == visible.nearly(self.model.due_in(self.rig.clock.now))
        assert self.model.records.overlooked() == []
        invariants.check(self.rig.state)
