"""A random walk over Resqu's commands, compared with its reference model."""

import os
from pathlib import Path
from random import Random
from typing import Any, Final

from crossdock.engine.state import EngineState
from crossdock.journal.snapshot import file
from crossdock.model.commands import core as c
from crossdock.model.commands import resqu
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Job, ResquData
from crossdock.model.records import Phase
from tests.model import invariants, resqu_acts
from tests.model.resqu_reference.commands import Reference
from tests.model.rig import Rig, fold

STEPS: Final = int(os.environ.get("CROSSDOCK_WALK_STEPS", "3000"))


COMPARE_EVERY: Final = 10


_PHASES: Final = {
    Phase.UNCOMMITTED: "open",
    Phase.COMMITTED: "committed",
    Phase.BACKLOG: "backlog",
    Phase.ACTIVE: "active",
}


def of_engine(state: EngineState) -> dict[str, Any]:
    """The part of the engine's state that the reference has too."""
    resqu_state = state.resqu
    return {
        "jobs": {number: _job(job) for number, job in state.jobs.items()},
        "ready": {
            name: [sort_key[4] for sort_key in queue.ready] for name, queue in state.queues.items() if len(queue.ready)
        },
        "locks": {resqu.uid_of(name): lock.holder for name, lock in state.locks.items()},
        "reserved": {resqu.uid_of(name): by for name, by in resqu_state.reserved.items()},
        "running": sorted(map(resqu.uid_of, resqu_state.running)),
        "deferred": {
            resqu.uid_of(name): _without_random_jid(spec.jid) for name, (_, spec) in resqu_state.deferred.items()
        },
        "buffers": {
            key: (each.number, each.token, each.text, each.said, each.by) for key, each in resqu_state.buffers.items()
        },
        "batches": {
            name: (_PHASES[batch.phase], batch.queue, batch.by_hand, batch.end, [n for (n,) in resqu_state.lanes[name]])
            for name, batch in resqu_state.batches.items()
        },
        "lanes": {name: list(queue.lanes) for name, queue in state.queues.items() if queue.lanes is not None},
        "backlogs": {key: list(names) for key, names in resqu_state.backlogs.items()},
        "plans": {each.plan: each.next for each in state.schedules.values()},
        "counters": (state.counters.number, state.counters.token),
    }


def _job(job: Job) -> tuple[Any, ...]:
    assert job.extra is not None
    assert isinstance(job.extra.protocol_data, ResquData)
    token = job.lease.token if job.lease is not None else 0
    state = job.state.name.lower()
    return (
        _without_random_jid(job.jid),
        state,
        job.queue,
        job.attempts,
        job.failures,
        job.due,
        job.extra.protocol_data.text,
        token,
        job.extra.resqu_batch,
    )


def _without_random_jid(jid: str) -> str:
    """Hides the random jids of plans' jobs, which the reference does not have."""
    return "" if len(jid) == 32 else jid


def of_reference(model: Reference) -> dict[str, Any]:
    said = {"": 0, "over": 1, "again": 2}
    queues = dict.fromkeys(job.queue for job in model.jobs.values() if job.state == "ready")
    return {
        "jobs": {
            number: (
                *(job.jid, job.state, job.queue, job.attempts, job.failures, job.due),
                *(job.text, job.token, job.batch),
            )
            for number, job in model.jobs.items()
        },
        "ready": {name: [job.number for job in model.ready(name)] for name in queues},
        "locks": model.locks,
        "reserved": model.reserved,
        "running": sorted(model.running),
        "deferred": {uid: spec.jid for uid, spec in model.deferred.items()},
        "buffers": {
            key: (each.number, each.token, each.text, said[each.said], each.by) for key, each in model.buffers.items()
        },
        "batches": {
            name: (batch.phase, batch.queue, batch.by_hand, batch.end, batch.numbers)
            for name, batch in model.batches.items()
        },
        "lanes": model.lanes,
        "backlogs": model.backlogs,
        "plans": {name: plan.next for name, plan in model.plans.items()},
        "counters": (model.number, model.token),
    }


class Walk:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = Random(seed)
        self.folder = folder
        self.rig = Rig()
        self.model = Reference()
        self.scene = resqu_acts.Scene(self.random, self.rig.clock, self.rig.state)
        self.do(c.Start())

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.85:
            self.scene.act(self.do)
        elif chance < 0.97:
            self.rig.clock.pass_by(self.random.choice((0.001, 0.5, 3.0, 20.0)))
        elif chance < 0.99:
            self.rig.clock.pass_by(self.random.choice((100.0, 1_800.0)))
            self.do(c.Tick(10_000))
        else:
            self.restart()

    def do(self, command: c.Command[Any]) -> Any:
        outcome = self.rig.do(command)
        expected = self.model.do(command, self.rig.clock.now)
        shown = outcome
        if isinstance(command, c.Tick):
            shown = None
        elif isinstance(outcome, Job):
            lease = outcome.lease
            shown = (outcome.number, lease.token) if lease is not None else outcome.number
        assert shown == expected, command
        return outcome

    def restart(self) -> None:
        last = decode_entry(self.rig.batches[-1])
        self.rig.clock.restart(last.wall, last.steady, last.events[-1].at)
        self.rig.adopt(fold(self.rig.batches) if self.random.random() < 0.5 else self._through_snapshot())
        self.scene.state = self.rig.state
        self.do(c.Start())

    def _through_snapshot(self) -> EngineState:
        path = self.folder / "snapshot"
        file.write(path, self.rig.state, 7, self.rig.clock.now.wall, self.rig.clock.now.steady)
        return file.load(path).state

    def compare(self) -> None:
        invariants.check(self.rig.state)
        assert not self.rig.engine.follow_ups
        assert of_engine(self.rig.state) == of_reference(self.model)


SEEDS: Final = range(1, 7)
