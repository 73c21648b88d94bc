"""The simulation of Resqu's commands with many seeds.

CROSSDOCK_SIM_STEPS   steps per seed (nightly: 100,000)
CROSSDOCK_SIM_SEEDS   number of seeds, from 1 on (nightly: 1,000)
CROSSDOCK_SIM_SEED    run only this seed
"""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.model.coverage import HELD, RESQU_KINDS, Coverage
from tests.model.resqu_simulation import ResquWorld

STEPS: Final = int(os.environ.get("CROSSDOCK_SIM_STEPS", "1000"))
ONLY_SEED: Final = os.environ.get("CROSSDOCK_SIM_SEED")
SEEDS: Final = [int(ONLY_SEED)] if ONLY_SEED else list(range(1, int(os.environ.get("CROSSDOCK_SIM_SEEDS", "16")) + 1))

MOVES: Final = {(kind, move) for kind, moves in HELD.items() for move in moves}


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(seed: int, tmp_path: Path) -> None:
    world = ResquWorld(seed, tmp_path)
    try:
        world.run(STEPS)
    except Exception as error:
        error.add_note("The last events: " + "\n".join(map(repr, world.log[-5:])))
        error.add_note(
            f"Repeat with: CROSSDOCK_SIM_SEED={seed} CROSSDOCK_SIM_STEPS={STEPS} "
            "python -m pytest tests/model/test_resqu_simulation.py -k test_seed"
        )
        raise
    assert {each for each in world.coverage.moves if each[0] in RESQU_KINDS} <= MOVES


@pytest.mark.skipif(ONLY_SEED is not None, reason="a single seed does not cover everything")
def test_the_seeds_see_every_event_and_every_move(tmp_path: Path) -> None:
    """Runs seeds until everything is covered."""
    seen = Coverage()
    for seed in SEEDS[:10]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = ResquWorld(seed, folder)
        world.run(STEPS)
        seen += world.coverage
        if set(seen.kinds) >= RESQU_KINDS and set(seen.moves) >= MOVES:
            break
    assert RESQU_KINDS - set(seen.kinds) == set()
    assert MOVES - set(seen.moves) == set()
