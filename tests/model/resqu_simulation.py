"""The simulation with Resqu's clients, allocators and workers: the same crashing server, other commands.

All commands of one step are in one journal entry, as in the server: the lease of a job and the buffer that it fills
reach the disk together or not at all.
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
from tests.model.simulation import CrashingEngine, PendingEntry, PowerCut, World
from tests.model.store import Store
from tests.support.picture import picture

_ACCEPTED = (r.Pushing.PUSHED, r.Pushing.REPEATED, r.Pushing.CONTINUED)


class ResquWorld(World):
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.clock = FakeClock()
        self.store = Store(folder)
        self.resqu_ledger = ResquLedger()
        self.coverage = Coverage()
        self.log: list[e.AnyEvent] = []
        self.replayed = EngineState()
        self.filling = PendingEntry()
        self.syncing: PendingEntry | None = None
        self.counts: Counter[str] = Counter()
        self.mean_events = self.random.choice((20, 100, 500))
        self.resqu_scene = Scene(self.random, self.clock, EngineState())
        self.engine = self._recovered()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            try:
                self._step()
            except PowerCut:
                self._crash()
        self._drain_commits()
        self._check_state()
        self.drain()
        self._check_state()
        self.resqu_ledger.audit()

    def _check_state(self) -> None:
        invariants.check(self.engine.state)
        assert picture(self.engine.state) == picture(self.replayed)

    def _step(self) -> None:
        chance = self.random.random()
        if chance < 0.72:
            self.resqu_scene.act(self.execute)
        elif chance < 0.82:
            self.clock.pass_by(self.random.choice((0.0001, 0.5, 5.0, 40.0)))
        elif chance < 0.822:
            self.clock.pass_by(self.random.choice((1_800.0, 90_000.0)))
        elif chance < 0.823:
            self.clock.jump(self.random.choice((-3_600.0, -2.0, 2.0, 3_600.0)))
        elif chance < 0.998:
            self._group_commit()
        else:
            self._compact()

    def execute(self, command: c.Command[Any]) -> Any:
        now = self.clock.now
        events, outcome, _ = self.engine.execute(command, now)
        pending = self.filling
        pending.events += [(event, now) for event in events]
        pending.hard = pending.hard or any(type(event) not in e.SOFT for event in events)
        if isinstance(command, r.PushJob) and outcome in _ACCEPTED:
            text, jid = protocol_data(command.spec).text, command.spec.jid
            pending.replies.append(lambda: self.resqu_ledger.pushed(text, jid))
        else:
            pending.replies.append(lambda: None)
        return outcome

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
            self.resqu_ledger.committed(event, then)

    def _crash(self) -> None:
        self.counts["crashes"] += 1
        if self.syncing is not None and self.random.random() < 0.5:
            self._durable(self.syncing)
        self.filling, self.syncing = PendingEntry(), None
        self.clock.pass_by(self.random.choice((0.0, 1.0, 60.0)))
        self.engine = self._recovered()

    def _recovered(self) -> CrashingEngine:
        found = recover(self.store)
        assert picture(found.state) == picture(self.replayed), "recovery differs from a replay of all events"
        invariants.check(found.state)
        self.clock.restart(found.wall, found.steady, found.state.counters.at)
        self.resqu_scene.state = found.state
        engine = CrashingEngine(found.state, Random(self.random.random()), -1)
        now = self.clock.now
        events, _, _ = engine.execute(c.Start(), now)
        assert type(events[0]) is e.Started
        self.filling = PendingEntry([(event, now) for event in events], hard=True)
        engine.events_left = int(self.random.expovariate(1 / self.mean_events)) + 2
        return engine

    def drain(self) -> None:
        """Works off all jobs. No job, batch or unique id is left."""
        state = self.engine.state
        self.execute(r.SetMapping(MAPPING, BATCHES))
        for plan in [each.plan for each in state.schedules.values()]:
            self.execute(r.ClearPlan(plan))
        for by in (1, 2, 3):
            self.execute(r.Release(by))
        for _ in range(300):
            for key in list(state.resqu.buffers):
                self.execute(b.EmptyBuffer("resqu", key, lost=True))
            for batch in list(state.resqu.batches.values()):
                if batch.by_hand:
                    self.execute(b.FinishResquBatch(batch.name))
            self.execute(r.SetMapping(MAPPING, BATCHES))
            while (job := self.execute(c.LeaseNext("faktory", tuple(state.queues), "d", TERMS))) is not None:
                self.execute(c.Succeed(job.jid, c.Claim("faktory", "d", (job.number, job.lease.token))))
            if not state.jobs and not state.resqu.batches:
                break
            self.clock.pass_by(max(60.0, self.engine.due_in(self.clock.now) or 0.0))
            self.execute(c.Tick(500))
        self._drain_commits()
        assert not state.jobs, "jobs are left that were never delivered"
        assert not state.locks, "a unique id was never released"
