"""The simulation with Resqu's clients, allocators and workers: the same server that dies at any event, other acts.

What belongs to one step of a client is in one batch, as it is in the server: a job that was leased and the buffer it
went into reach the disk together or not at all.
"""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from crossdock.engine.engine import apply
from crossdock.engine.state import EngineState
from crossdock.journal.recovery import recover
from crossdock.model import events as e
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu as b
from crossdock.model.commands import resqu as r
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, decode_entry, encode_entry
from tests.model import invariants
from tests.model.coverage import Coverage
from tests.model.resqu_acts import BATCHES, MAPPING, TERMS, Scene
from tests.model.resqu_ledger import ResquLedger
from tests.model.resqu_reference.jobs import protocol_data
from tests.model.rig import FakeClock
from tests.model.simulation import Mortal, PowerCut, Turn, World
from tests.model.store import Store
from tests.support.picture import picture

_SAID = (r.Pushing.PUSHED, r.Pushing.REPEATED, r.Pushing.CONTINUED)


class ResquWorld(World):
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.clock = FakeClock()
        self.store = Store(folder)
        self.told = ResquLedger()
        self.coverage = Coverage()
        self.log: list[e.AnyEvent] = []
        self.folded = EngineState()
        self.filling = Turn()
        self.syncing: Turn | None = None
        self.happened: Counter[str] = Counter()
        self.mean_events = self.random.choice((20, 100, 500))
        self.stage = Scene(self.random, self.clock, EngineState())
        self.engine = self._recovered()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self._step()
            except PowerCut:
                self._crash()
        self._quiet()
        self._look_around()
        self.drain()
        self._look_around()
        self.told.audit()

    def _look_around(self) -> None:
        invariants.check(self.engine.state)
        assert picture(self.engine.state) == picture(self.folded)

    def _step(self) -> None:
        dice = self.random.random()
        if dice < 0.72:
            self.stage.act(self.say)
        elif dice < 0.82:
            self.clock.pass_by(self.random.choice((0.0001, 0.5, 5.0, 40.0)))
        elif dice < 0.822:
            self.clock.pass_by(self.random.choice((1_800.0, 90_000.0)))
        elif dice < 0.823:
            self.clock.jump(self.random.choice((-3_600.0, -2.0, 2.0, 3_600.0)))
        elif dice < 0.998:
            self._turn_over()
        else:
            self._compact()

    def say(self, command: c.Command[Any]) -> Any:
        now = self.clock.now
        events, outcome, _ = self.engine.execute(command, now)
        turn = self.filling
        turn.events += [(event, now) for event in events]
        turn.hard = turn.hard or any(type(event) not in e.SOFT for event in events)
        if isinstance(command, r.PushJob) and outcome in _SAID:
            text, jid = protocol_data(command.spec).text, command.spec.jid
            turn.replies.append(lambda: self.told.pushed(text, jid))
        else:
            turn.replies.append(lambda: None)
        return outcome

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
            self.told.committed(event, then)

    def _crash(self) -> None:
        self.happened["crashes"] += 1
        if self.syncing is not None and self.random.random() < 0.5:
            self._durable(self.syncing)
        self.filling, self.syncing = Turn(), None
        self.clock.pass_by(self.random.choice((0.0, 1.0, 60.0)))
        self.engine = self._recovered()

    def _recovered(self) -> Mortal:
        found = recover(self.store)
        assert picture(found.state) == picture(self.folded), "snapshot and tail give what all events give"
        invariants.check(found.state)
        self.clock.restart(found.wall, found.steady, found.state.counters.at)
        self.stage.state = found.state
        engine = Mortal(found.state, Random(self.random.random()), -1)
        now = self.clock.now
        events, _, _ = engine.execute(c.Start(), now)
        assert type(events[0]) is e.Started
        self.filling = Turn([(event, now) for event in events], hard=True)
        engine.events_left = int(self.random.expovariate(1 / self.mean_events)) + 2
        return engine

    def drain(self) -> None:
        """Everything that is left comes out; then nothing is left, nor held back."""
        state = self.engine.state
        self.say(r.SetMapping(MAPPING, BATCHES))
        for plan in [each.plan for each in state.schedules.values()]:
            self.say(r.ClearPlan(plan))
        for by in (1, 2, 3):
            self.say(r.Release(by))
        for _ in range(300):
            for key in list(state.resqu.buffers):
                self.say(b.EmptyBuffer("resqu", key, lost=True))
            for stage in list(state.resqu.batches.values()):
                if stage.by_hand:
                    self.say(b.FinishResquBatch(stage.name))
            self.say(r.SetMapping(MAPPING, BATCHES))
            while (job := self.say(c.LeaseNext("faktory", list(state.queues), "d", TERMS))) is not None:
                self.say(c.Succeed(job.jid, c.Claim("faktory", "d", (job.number, job.lease.token))))
            if not state.jobs and not state.resqu.batches:
                break
            self.clock.pass_by(max(60.0, self.engine.due_in(self.clock.now) or 0.0))
            self.say(c.Tick(500))
        self._quiet()
        assert not state.jobs, "something never came out"
        assert not state.locks, "a unique id is stuck"
