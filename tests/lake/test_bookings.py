"""Rows alone give what the engine has: the live statistics, and every lease with its one end."""

from pathlib import Path

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.memory import Memory
from crossdock.model.states import State
from tests.lake.ledger import booked, open_leases, rows_of, same_pages, without_end
from tests.model.simulation import World
from tests.qless.walk import Walk
from tests.support.desk import stored


def _folded(events: list[object]) -> Memory:
    memory = without_end(Memory())
    for event in events:
        apply(memory, event)  # type: ignore[arg-type]
        without_end(memory)  # a flush made them anew
    return memory


@pytest.mark.parametrize("seed", range(12))
def test_a_walk_of_qless_and_another_door(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(2_000):
        walk.step()
    events = stored(walk.desk.events)
    memory = _folded(list(events))
    rows = rows_of([[event] for event in events])
    assert same_pages(memory.stats, booked(rows))
    leased = {memory.jobs[number].lease.token for _, number in memory.shelves[State.LEASED]}  # type: ignore[union-attr]
    assert open_leases(rows) == leased


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_simulation_with_power_cuts(seed: int, tmp_path: Path) -> None:
    world = World(seed, tmp_path)
    world.run(1_000)
    memory = _folded(list(world.log))
    rows = rows_of([[event] for event in world.log])
    assert same_pages(memory.stats, booked(rows))
    leased = {memory.jobs[number].lease.token for _, number in memory.shelves[State.LEASED]}  # type: ignore[union-attr]
    assert open_leases(rows) == leased
