"""SIGKILL while qless jobs wait for dependencies and an interval creates jobs, with workers of all protocols.

No job is delivered before its dependency has succeeded, and each slot of the interval creates one job.
"""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from crossdock.engine.state import EngineState
from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model import events as e
from crossdock.model.events.codec import decode_entry
from crossdock.model.job import Job
from crossdock.model.states import State
from crossdock.protocols.payload import as_args
from tests.model import invariants
from tests.support.accounting import Kind, Op, Outcome, account
from tests.support.dependency_load import TICK, DependencyLoad
from tests.support.load import named
from tests.support.peer import Got
from tests.support.peers import LISTENING
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]

KILLS = 6


def kill_under_load(data: Path, kills: int = KILLS, fault: str = "") -> tuple[DependencyLoad, list[float]]:
    with Server(data, fault=fault, protocols=LISTENING) as server:
        load = DependencyLoad(server)
        load.start()
        dead = load.run_with_kills(server, kills, Random(23))
        load.finish()
        if not fault:
            load.drain()
        assert server.stop() == 0
    return load, dead


def on_disk(data: Path) -> tuple[list[str], EngineState]:
    """The jobs that the interval has created, in order, and the state."""
    journal = SqliteJournal(DataDir(data))
    try:
        events = [event for _, entry in journal.read(0) for event in decode_entry(entry).events]
        made = [spec.jid for event in events if isinstance(event, e.Recurred) for spec in event.specs]
        return made, recover(journal).state
    finally:
        journal.close()


def name(job: Job) -> str:
    return job.jid if job.jid.startswith(f"{TICK}-") else named(Got("", "", as_args(job)).text)


def delivered_too_early(load: DependencyLoad) -> list[str]:
    """Jobs delivered before an ACK of their dependency was even sent."""
    acked: dict[str, float] = {}
    for op in load.ops:
        if op.kind is Kind.ACK and op.outcome is not Outcome.REFUSED:
            acked[op.jid] = min(op.began, acked.get(op.jid, op.began))
    fetched = [op for op in load.ops if op.kind is Kind.FETCH and op.jid in load.depends_on]
    return [op.jid for op in fetched if acked.get(load.depends_on[op.jid], float("inf")) > op.ended]


def test_dependencies_and_intervals_survive_kills(tmp_path: Path) -> None:
    load, dead = kill_under_load(tmp_path / "data")
    made, state = on_disk(tmp_path / "data")
    invariants.check(state)
    present = [name(job) for job in state.jobs.values() if job.state is not State.COMPLETE]
    pushed = [Op(Kind.PUSH, "server", jid, 0.0, 0.0) for jid in made]
    verdict = account([*load.ops, *pushed], present, kills=dead)
    count = Counter((op.kind, op.outcome) for op in load.ops)
    print({f"{kind.value} {outcome.value}": n for (kind, outcome), n in count.items()}, len(made), verdict.redelivered)
    assert verdict.faults == {}
    assert delivered_too_early(load) == []
    assert made == [f"{TICK}-{n}" for n in range(1, state.qless.intervals[TICK].count + 1)], "each slot once, in order"
    worked = {op.jid for op in load.ops if op.kind is Kind.FETCH}
    assert len(worked & set(load.depends_on)) > 50
    assert len(worked & set(made)) > 10
    blocked = [job for job in state.jobs.values() if job.state is State.BLOCKED]
    waited_for = {name(state.jobs[dependency]) for job in blocked for dependency in job.extra.links.depends_on}  # type: ignore[union-attr]
    assert waited_for <= set(present), "no job waits for a completed dependency"


def test_ignored_dependencies_would_be_noticed(tmp_path: Path) -> None:
    load, _ = kill_under_load(tmp_path / "data", 1, "no-dependencies")
    assert delivered_too_early(load)


def test_a_slot_that_creates_two_jobs_would_be_noticed(tmp_path: Path) -> None:
    kill_under_load(tmp_path / "data", 1, "duplicate-slots")
    made, state = on_disk(tmp_path / "data")
    assert made != [f"{TICK}-{n}" for n in range(1, state.qless.intervals[TICK].count + 1)]
