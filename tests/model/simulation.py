"""Deterministic simulation (testing.md section 9): many clients, one thread, simulated clocks, crashes at any event.

The server is the real engine with the real group commit rule. Commands of all clients fill one journal entry while the
entry before it is being synced. A reply leaves when its own entry and all entries before it are durable. A crash loses
whatever was not durable, also in the middle of an entry or of a command; the entry being synced may have reached the
disk or not. The real recovery then reads the store, sometimes from a snapshot, and the clients continue with what they
remember. `ledger` checks the result.

Everything random comes from one seed. A seed gives the same events on every machine.
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
from crossdock.model.commands import admin
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
    """The simulated machine lost power."""


class CrashingEngine(Engine):
    """An engine that raises `PowerCut` after a given number of events.

    That may be any event of a command. How many of them were applied does not matter, because the state is lost.
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
class PendingEntry:
    """A journal entry that is being filled, and the replies to send once it is durable."""

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
        self.replayed = EngineState()  #: the same events, decoded from the journal's encoding and applied
        self.filling = PendingEntry()
        self.syncing: PendingEntry | None = None
        self.counts: Counter[str] = Counter()
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
        self._drain_commits()
        self._check_state()
        self.drain()
        self._check_state()
        self.ledger.audit()

    def _check_state(self) -> None:
        """While nothing is pending, the engine's state equals what was committed."""
        state = self.engine.state
        invariants.check(state)
        self.ledger.agrees(state)
        assert picture(state) == picture(self.replayed)

    def _step(self) -> None:
        chance = self.random.random()
        if chance < 0.72:
            self.do(*draw(self.scene))
        elif chance < 0.82:
            self.clock.pass_by(self.random.choice((0.0001, 0.01, 0.5, 5.0, 40.0)))
        elif chance < 0.822:
            self.clock.pass_by(self.random.choice((1_800.0, 3_600.0, DAY, 32 * DAY, 181 * DAY)))
        elif chance < 0.823:
            self.clock.jump(self.random.choice((-DAY, -3_600.0, -2.0, 2.0, 3_600.0, DAY)))
        elif chance < 0.998:
            self._group_commit()
        else:
            self._compact()

    # The server

    def do(self, client: Client, command: c.Command[Any]) -> None:
        self.ledger.record_attempt(command)
        before = self._expected_settlement(command)
        now = self.clock.now
        events, outcome, _ = self.engine.execute(command, now)
        assert before is None or bool(outcome) is before, "a claim with a lease settles that lease or none"
        pending = self.filling
        pending.events += [(event, now) for event in events]
        pending.hard = pending.hard or any(type(event) not in e.SOFT for event in events)
        pending.replies.append(self._reply(client, command, events, outcome))

    def _expected_settlement(self, command: c.Command[Any]) -> bool | None:
        """Whether a settlement that names a lease must succeed; None for other commands."""
        if not isinstance(command, c.Succeed | c.Fail) or command.claim.held is None or command.claim.free:
            return None
        number, token = command.claim.held
        job = self.engine.state.jobs.get(number)
        return job is not None and job.lease is not None and job.lease.token == token

    def _reply(self, client: Client, command: c.Command[Any], events: Any, outcome: Any) -> Callable[[], None]:
        """What happens when the reply arrives at the client. Its content is fixed at the decision."""
        if isinstance(command, c.Enqueue):
            refused = outcome or [None] * len(command.specs)
            taken = [spec.payload for spec, why in zip(command.specs, refused, strict=True) if why is None]
            self.ledger.bulks.append(taken)
            return partial(self.ledger.pushed, taken)
        if isinstance(command, c.LeaseNext) and outcome is not None:
            client.record_lease(outcome)
            held: LeaseRef = (outcome.number, outcome.lease.token)
            return partial(self._deliver, client, outcome.jid, held, outcome.payload)
        if isinstance(command, c.Succeed | c.Fail):
            if outcome:
                client.forget_lease(command.jid)
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
            client.forget_lease(jid)
        closed = [event for event in events if isinstance(event, e.Succeeded)]

        def deliver() -> None:
            self.ledger.pushed(taken)
            self._settled(client, jids, closed)

        return deliver

    def _deliver(self, client: Client, jid: str, held: LeaseRef, payload: bytes) -> None:
        if self.scene.chance(0.02):  # the connection is lost, so the reply cannot be delivered
            self.do(client, c.GiveBack(client.via, [held]))
            return
        self.ledger.delivered(held, payload)
        client.working.append(jid)

    def _settled(self, client: Client, jids: list[str], closed: Sequence[e.Succeeded | e.Failed]) -> None:
        for jid in jids:
            client.stop_working(jid)
        for event in closed:
            self.ledger.settled((event.number, event.token), success=isinstance(event, e.Succeeded))

    def _group_commit(self) -> None:
        """Makes the syncing entry durable, sends its replies, and starts to sync the entry that was filled in the
        meantime. Resolves some postponed dependents first, as the server's timer does."""
        if self.engine.state.unresolved:
            self.do(self.scene.clients[0], c.ResolveDependents(1 + len(self.log) % 3))
        if self.syncing is not None:
            done, self.syncing = self.syncing, None
            self._durable(done)
            self._maybe_cut_power(0.01)
            for reply in done.replies:
                reply()
        if self.filling.hard:
            self.syncing, self.filling = self.filling, PendingEntry()
        else:  # soft events wait for the next hard event; commands that only read are answered at once
            replies, self.filling.replies = self.filling.replies, []
            for reply in replies:
                reply()

    def _durable(self, pending: PendingEntry) -> None:
        entry = encode_entry(
            JournalEntry(
                EVENT_VERSION, self.clock.now.wall, self.clock.now.steady, [event for event, _ in pending.events]
            )
        )
        self.store.append(entry)
        for event, (_, then) in zip(decode_entry(entry).events, pending.events, strict=True):
            self.log.append(event)
            before = self.coverage.before(self.replayed, event)
            apply(self.replayed, event)
            self.coverage.after(self.replayed, event, before)
            self.ledger.committed(event, then)

    def _drain_commits(self) -> None:
        """Commits until everything that was decided is durable and answered."""
        self.engine.events_left = -1
        while self.syncing is not None or self.filling.replies or self.filling.events:
            self.filling.hard = bool(self.filling.events)  # commit soft events too
            self._group_commit()
        assert not self.engine.follow_ups, "a command has follow-ups left"

    def _maybe_cut_power(self, chance: float) -> None:
        if self.engine.events_left >= 0 and self.random.random() < chance:
            raise PowerCut

    # Faults

    def _crash(self) -> None:
        self.counts["crashes"] += 1
        if self.syncing is not None and self.random.random() < 0.5:
            self._durable(self.syncing)  # it reached the disk, but no reply was sent
            self.counts["durable and not answered"] += 1
        self.counts["events lost"] += len(self.filling.events)
        self.filling, self.syncing = PendingEntry(), None
        self.clock.pass_by(self.random.choice((0.0, 1.0, 60.0, 3_600.0)))
        self.engine = self._recovered()
        for client in self.scene.clients:
            client.reconnect(self.engine.state if self.random.random() < 0.5 else None)

    def _recovered(self) -> CrashingEngine:
        found = recover(self.store)
        assert picture(found.state) == picture(self.replayed), "recovery differs from a replay of all events"
        invariants.check(found.state)
        self.ledger.agrees(found.state)
        self.clock.restart(found.wall, found.steady, found.state.counters.at)
        self.scene.state = found.state
        left = int(self.random.expovariate(1 / self.mean_events)) + 2
        engine = CrashingEngine(found.state, Random(self.random.random()), -1)
        now = self.clock.now
        alone = not found.state.foreground
        events, _, _ = engine.execute(c.Start(), now)
        assert type(events[0]) is e.Started
        more = [event for event in events[1:] if type(event) is not e.ProgressDated]  # of leases that fell back
        assert not alone or not more, "a recovered state has follow-ups left"
        engine.events_left = left
        self.filling = PendingEntry([(event, now) for event in events], hard=True)
        return engine

    def _compact(self) -> None:
        if self.store.last:
            self.counts["snapshots"] += 1
            self.store.compact()

    # The end

    def drain(self) -> None:
        """Works off all jobs. Each is delivered as it was pushed, and none is left."""
        operator = self.scene.clients[0]
        kept = frozenset({State.COMPLETE, State.FAILED})
        for command in (c.SetSchedules([]), c.SetThrottles([]), admin.ResumeQueues(None)):
            self.do(operator, command)
        leases = [(job.number, job.lease.token) for job in self.engine.state.jobs.values() if job.lease]
        self.do(operator, c.GiveBack(operator.via, leases))
        worker = Client("drain", "faktory", values.TERMS[0])
        for _ in range(500):
            while self._drain_one(worker):
                pass
            self.do(operator, admin.Remove(operator.via, "discarded", list(self.engine.state.jobs), kept))
            if not self.engine.state.jobs:
                break
            self.clock.pass_by(max(3_600.0, self.engine.due_in(self.clock.now) or 0.0))
            self.do(operator, c.Tick(500))
            while self.engine.state.unresolved:
                self.do(operator, c.ResolveDependents(500))
        self._drain_commits()
        assert not self.engine.state.jobs, "jobs are left that were never delivered"

    def _drain_one(self, worker: Client) -> bool:
        self.do(worker, c.LeaseNext(worker.via, tuple(self.engine.state.queues), worker.worker, worker.terms))
        self._drain_commits()
        for jid in list(worker.working):
            self.do(worker, c.Succeed(jid, worker.claim(jid)))
            self._drain_commits()
            return True
        return any(queue.ready for queue in self.engine.state.queues.values())


def run(seed: int, steps: int, folder: Path) -> World:
    world = World(seed, folder)
    world.run(steps)
    return world
