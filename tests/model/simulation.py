"""Deterministic simulation (RELIABILITY T9): many clients, one thread, made-up clocks, a server that dies at any event.

The server here is the real engine behind the real group commit rule: commands of all clients fill one batch while the
one before is being synced; replies leave when their own batch and every one before it are durable. A crash takes
whatever was not durable, in the middle of a batch or of a command; the batch under way may have reached the disk or
not. Then the real recovery reads the store, sometimes by way of a snapshot, and clients go on with what they remember.
`ledger` checks.

All that happens comes from one seed: the same seed gives the same events, on any machine.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, TypeVar
from unittest.mock import patch

from crossdock.engine.decision import Decision
from crossdock.engine.engine import Engine, apply
from crossdock.engine.index import dependents
from crossdock.engine.state import EngineState
from crossdock.journal.recovery import recover
from crossdock.model import events as e
from crossdock.model.clock import Now
from crossdock.model.commands import admin as admin_module
from crossdock.model.commands import core as c
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry
from crossdock.model.job import LeaseRef, Spec
from crossdock.model.states import State
from tests.model import invariants, values
from tests.model.acts.drawing import draw
from tests.model.acts.scene import Client, Scene, clients
from tests.model.coverage import Coverage
from tests.model.ledger.ledger import Ledger
from tests.model.rig import FakeClock
from tests.model.store import Store
from tests.support.picture import picture

T = TypeVar("T")

DAY: Final = 86_400.0
CLIENTS: Final = 24


class PowerCut(Exception):
    """The machine is off."""


class Mortal(Engine):
    """An engine whose machine loses power at the event it was told to.

    That may be any event of a command. How many of them were applied does not matter then: the memory is gone with it.
    """

    def __init__(self, state: EngineState, random: Random, events_left: int) -> None:
        super().__init__(state, random)
        self.events_left = events_left

    def execute(self, command: c.Command[T], now: Now) -> Decision[T]:
        decision = super().execute(command, now)
        if 0 <= self.events_left < len(decision[0]):
            raise PowerCut
        self.events_left -= len(decision[0])
        return decision


@dataclass
class Turn:
    """One batch in the making, and what may be said once it is durable."""

    events: list[tuple[e.AnyEvent, Now]] = field(default_factory=list)
    hard: bool = False
    replies: list[Callable[[], None]] = field(default_factory=list)


class World:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.clock = FakeClock()
        self.store = Store(folder)
        self.ledger = Ledger()
        self.coverage = Coverage()
        self.log: list[e.AnyEvent] = []  #: every committed event
        self.folded = EngineState()  #: their fold, as they come back from the journal's encoding
        self.filling = Turn()
        self.syncing: Turn | None = None
        self.happened: Counter[str] = Counter()
        self.mean_events = self.random.choice((20, 100, 500))  #: between two power cuts
        self.at_once = (0, 1, 100)[seed % 3]  #: dependents that a command resolves itself
        self.scene = Scene(self.random, self.clock, EngineState(), clients(self.random, CLIENTS))
        self.engine = self._recovered()

    def run(self, steps: int) -> None:
        with patch.object(dependents, "AT_ONCE", self.at_once):
            self._run(steps)

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self._step()
            except PowerCut:
                self._crash()
        self._quiet()
        self._look_around()
        self.drain()
        self._look_around()
        self.ledger.audit()

    def _look_around(self) -> None:
        """With nothing under way the state is what was committed."""
        state = self.engine.state
        invariants.check(state)
        self.ledger.agrees(state)
        assert picture(state) == picture(self.folded)

    def _step(self) -> None:
        dice = self.random.random()
        if dice < 0.72:
            self.do(*draw(self.scene))
        elif dice < 0.82:
            self.clock.pass_by(self.random.choice((0.0001, 0.01, 0.5, 5.0, 40.0)))
        elif dice < 0.822:
            self.clock.pass_by(self.random.choice((1_800.0, 3_600.0, DAY, 32 * DAY, 181 * DAY)))
        elif dice < 0.823:
            self.clock.jump(self.random.choice((-DAY, -3_600.0, -2.0, 2.0, 3_600.0, DAY)))
        elif dice < 0.998:
            self._turn_over()
        else:
            self._compact()

    # The server

    def do(self, client: Client, command: c.Command[Any]) -> None:
        self.ledger.tries(command)
        before = self._fenced(command)
        now = self.clock.now
        events, outcome, _ = self.engine.execute(command, now)
        assert before is None or bool(outcome) is before, "who was given a lease settles that one or none"
        turn = self.filling
        turn.events += [(event, now) for event in events]
        turn.hard = turn.hard or any(type(event) not in e.SOFT for event in events)
        turn.replies.append(self._reply(client, command, events, outcome))

    def _fenced(self, command: c.Command[Any]) -> bool | None:
        """What must come of a settlement that names a lease; None: this is none."""
        if not isinstance(command, c.Succeed | c.Fail) or command.claim.held is None or command.claim.free:
            return None
        number, token = command.claim.held
        job = self.engine.state.jobs.get(number)
        return job is not None and job.lease is not None and job.lease.token == token

    def _reply(self, client: Client, command: c.Command[Any], events: Any, outcome: Any) -> Callable[[], None]:
        """What the client learns when its reply arrives. Everything in it is as it was at the decision."""
        if isinstance(command, c.Enqueue):
            refused = outcome or [None] * len(command.specs)
            taken = [spec.payload for spec, why in zip(command.specs, refused, strict=True) if why is None]
            self.ledger.bulks.append(taken)
            return partial(self.ledger.pushed, taken)
        if isinstance(command, c.LeaseNext) and outcome is not None:
            client.is_given(outcome)
            held: LeaseRef = (outcome.number, outcome.lease.token)
            return partial(self._deliver, client, outcome.jid, held, outcome.payload)
        if isinstance(command, c.Succeed | c.Fail):
            if outcome:
                client.has_settled(command.jid)
            closed = [event for event in events if isinstance(event, e.Succeeded | e.Failed)]
            assert bool(closed) is (outcome is c.Verdict.DONE)
            return partial(self._settled, client, [command.jid], closed[:1])
        if isinstance(command, c.Transaction):
            return self._transacted(client, command, events, outcome)
        return lambda: None

    def _transacted(
        self, client: Client, command: c.Transaction, events: Any, outcome: c.Transacted
    ) -> Callable[[], None]:
        if outcome.refused >= 0:
            assert all(isinstance(event, e.NumbersDrawn) for event in events)
            return lambda: None
        taken = [step.payload for step in command.steps if isinstance(step, Spec)]
        jids = list(dict.fromkeys(step.jid for step in command.steps if isinstance(step, c.Succeed)))
        self.ledger.bulks.append(taken)
        for jid in jids:
            client.has_settled(jid)
        closed = [event for event in events if isinstance(event, e.Succeeded)]

        def heard() -> None:
            self.ledger.pushed(taken)
            self._settled(client, jids, closed)

        return heard

    def _deliver(self, client: Client, jid: str, held: LeaseRef, payload: bytes) -> None:
        if self.scene.chance(0.02):  # its connection is lost: the reply could not be handed over
            self.do(client, c.GiveBack(client.via, [held]))
            return
        self.ledger.delivered(held, payload)
        client.working.append(jid)

    def _settled(self, client: Client, jids: list[str], closed: Sequence[e.Succeeded | e.Failed]) -> None:
        for jid in jids:
            client.hears(jid)
        for event in closed:
            self.ledger.settled((event.number, event.token), success=isinstance(event, e.Succeeded))

    def _turn_over(self) -> None:
        """What was syncing is durable and its replies leave; the batch that filled meanwhile is handed to the disk. As
        the server's timer does, a slice of postponed dependents goes into the next one."""
        if self.engine.state.unresolved:
            self.do(self.scene.clients[0], c.ResolveDependents(1 + len(self.log) % 3))
        if self.syncing is not None:
            done, self.syncing = self.syncing, None
            self._durable(done)
            self._maybe_cut(0.01)
            for reply in done.replies:
                reply()
        if self.filling.hard:
            self.syncing, self.filling = self.filling, Turn()
        else:  # soft events wait for the next batch; what only reads is answered at once
            replies, self.filling.replies = self.filling.replies, []
            for reply in replies:
                reply()

    def _durable(self, turn: Turn) -> None:
        batch = encode_entry(
            JournalEntry(EVENT_VERSION, self.clock.now.wall, self.clock.now.steady, [event for event, _ in turn.events])
        )
        self.store.append(batch)
        for event, (_, then) in zip(decode_entry(batch).events, turn.events, strict=True):
            self.log.append(event)
            before = self.coverage.before(self.folded, event)
            apply(self.folded, event)
            self.coverage.after(self.folded, event, before)
            self.ledger.committed(event, then)

    def _quiet(self) -> None:
        """Nothing under way: everything that was decided is durable and answered."""
        self.engine.events_left = -1
        while self.syncing is not None or self.filling.replies or self.filling.events:
            self.filling.hard = bool(self.filling.events)  # soft ones too, this once
            self._turn_over()
        assert not self.engine.state.follow_ups and not self.engine.state.resolved_dependents, (
            "a command leaves nothing undone"
        )

    def _maybe_cut(self, chance: float) -> None:
        if self.engine.events_left >= 0 and self.random.random() < chance:
            raise PowerCut

    # What goes wrong

    def _crash(self) -> None:
        self.happened["crashes"] += 1
        if self.syncing is not None and self.random.random() < 0.5:
            self._durable(self.syncing)  # it reached the disk, but nobody was told
            self.happened["durable and not answered"] += 1
        self.happened["events lost"] += len(self.filling.events)
        self.filling, self.syncing = Turn(), None
        self.clock.pass_by(self.random.choice((0.0, 1.0, 60.0, 3_600.0)))
        self.engine = self._recovered()
        for client in self.scene.clients:
            client.reconnect(self.engine.state if self.random.random() < 0.5 else None)

    def _recovered(self) -> Mortal:
        found = recover(self.store)
        assert picture(found.state) == picture(self.folded), "snapshot and tail give what all events give"
        invariants.check(found.state)
        self.ledger.agrees(found.state)
        self.clock.restart(found.wall, found.steady, found.state.counters.at)
        self.scene.state = found.state
        left = int(self.random.expovariate(1 / self.mean_events)) + 2
        engine = Mortal(found.state, Random(self.random.random()), -1)
        now = self.clock.now
        alone = not found.state.foreground
        events, _, _ = engine.execute(c.Start(), now)
        assert type(events[0]) is e.Started
        assert not alone or len(events) == 1, "a recovered state calls for nothing that its batches did not hold"
        engine.events_left = left
        self.filling = Turn([(event, now) for event in events], hard=True)
        return engine

    def _compact(self) -> None:
        if self.store.last:
            self.happened["snapshots"] += 1
            self.store.compact()

    # The end

    def drain(self) -> None:
        """Everything that is left comes out, once, as it went in; then nothing is left."""
        admin = self.scene.clients[0]
        kept = frozenset({State.COMPLETE, State.FAILED})
        for command in (c.SetSchedules([]), c.SetThrottles([]), admin_module.ResumeQueues(None)):
            self.do(admin, command)
        leases = [(job.number, job.lease.token) for job in self.engine.state.jobs.values() if job.lease]
        self.do(admin, c.GiveBack(admin.via, leases))
        worker = Client("drain", "faktory", values.TERMS[0])
        for _ in range(500):
            while self._drain_one(worker):
                pass
            self.do(admin, admin_module.Remove(admin.via, "discarded", list(self.engine.state.jobs), kept))
            if not self.engine.state.jobs:
                break
            self.clock.pass_by(max(3_600.0, self.engine.due_in(self.clock.now) or 0.0))
            self.do(admin, c.Tick(500))
            while self.engine.state.unresolved:
                self.do(admin, c.ResolveDependents(500))
        self._quiet()
        assert not self.engine.state.jobs, "something never came out"

    def _drain_one(self, worker: Client) -> bool:
        self.do(worker, c.LeaseNext(worker.via, list(self.engine.state.queues), worker.worker, worker.terms))
        self._quiet()
        for jid in list(worker.working):
            self.do(worker, c.Succeed(jid, worker.claim(jid)))
            self._quiet()
            return True
        return any(queue.ready for queue in self.engine.state.queues.values())


def run(seed: int, steps: int, folder: Path) -> World:
    world = World(seed, folder)
    world.run(steps)
    return world
