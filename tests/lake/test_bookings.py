"""Rows alone give what the engine has: the live statistics, and every lease with its one end."""

from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.memory import Memory
from crossdock.model.events import AnyEvent, Pushed
from crossdock.model.job import Form, Spec
from crossdock.model.rules import Rules
from crossdock.model.states import State
from crossdock.wire.redis.qless.dialect import Dialect
from tests.lake.ledger import Row, booked, open_leases, rows_of, same_pages, without_end
from tests.model.resqu_simulation import ResquWorld
from tests.model.simulation import World
from tests.qless import test_walk
from tests.qless.replay import QlessDesk
from tests.qless.test_replay import DIALECTS, RECORDINGS
from tests.qless.walk import Walk
from tests.support.desk import stored


def rows_agree(events: Sequence[AnyEvent]) -> list[Row]:
    """The rows of these events, if they say what the fold of the events says."""
    memory = without_end(Memory())
    for event in events:
        apply(memory, event)
        without_end(memory)  # a flush made them anew, and a setting may have changed
    rows = rows_of([[event] for event in events])
    assert same_pages(memory.stats, booked(rows))
    leased = [memory.jobs[number].lease for _, number in memory.shelves[State.LEASED]]
    assert open_leases(rows) == {lease.token for lease in leased if lease is not None}
    return rows


@pytest.mark.parametrize("dialect", test_walk.DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", range(6))
def test_a_walk_of_qless_and_another_door(seed: int, dialect: Dialect) -> None:
    walk = Walk(seed, dialect)
    for _ in range(1_500):
        walk.step()
    rows = rows_agree(stored(walk.desk.events))
    assert {row["outcome"] for row in rows} > {"succeeded", "failed"}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_recorded_conversations_of_every_dialect(recording: str) -> None:
    runs = 0
    for lines in RECORDINGS[recording].values():
        desk = QlessDesk()
        desk.dialect = DIALECTS[recording]
        for line in lines:
            if line.script:
                desk.answer_script(line)
            else:
                desk.answer(line.call)
        runs += sum(row["booked_run"] is True for row in rows_agree(stored(desk.events)))
    assert runs


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_simulation_with_power_cuts(seed: int, tmp_path: Path) -> None:
    world = World(seed, tmp_path)
    world.run(1_000)
    rows = rows_agree(world.log)
    assert {row["outcome"] for row in rows} > {"succeeded", "failed", "returned"}


def test_simulations_of_resqu(tmp_path: Path) -> None:
    seen: set[str] = set()
    for seed in range(1, 6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = ResquWorld(seed, folder)
        world.run(1_000)
        rows = rows_agree(world.log)
        assert {(row["state"], row["why"]) for row in rows} > {("held", "batch")}
        seen |= {row["event"] for row in rows}
    assert seen > {"rescheduled", "deferred", "taken", "put-on-queue", "stage-committed", "stage-ended"}


def test_numbers_of_any_size_are_kept_within_their_columns() -> None:
    """A client's priority may be as long as its line."""
    huge = 10**400
    specs = [
        Spec(f"job-{n}", "q", "kind", b"", Form.NONE, priority, Rules(tries))
        for n, (priority, tries) in enumerate([(huge, 2**80), (-huge, -(2**80)), (2**60 + 1, 3), (0.5, 0)])
    ]
    rows = rows_of([[Pushed(1.0, 1, "faktory", specs)]])
    assert [row["priority"] for row in rows] == [inf, -inf, float(2**60), 0.5]
    assert [row["retries"] for row in rows] == [2**63 - 1, -(2**63), 3, 0]
    alike = rows_of([[Pushed(1.0, 1, "faktory", specs[:1] * 3)]])
    assert [row["priority"] for row in alike] == [inf] * 3
