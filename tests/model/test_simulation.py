"""The simulation with many seeds. A seed that fails prints the command that repeats it.

CROSSDOCK_SIM_STEPS   steps per seed (nightly: 100,000)
CROSSDOCK_SIM_SEEDS   number of seeds, from 1 on (nightly: 1,000)
CROSSDOCK_SIM_SEED    run only this seed
"""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from crossdock.model.events import Leased
from crossdock.model.events.codec import EVENT_VERSION, JournalEntry, encode_entry
from tests.model.coverage import JOB_KINDS, MOVED, UNMOVED, USED, Coverage
from tests.model.ledger import ledger
from tests.model.simulation import World, run

STEPS: Final = int(os.environ.get("CROSSDOCK_SIM_STEPS", "1000"))
ONLY_SEED: Final = os.environ.get("CROSSDOCK_SIM_SEED")
SEEDS: Final = [int(ONLY_SEED)] if ONLY_SEED else list(range(1, int(os.environ.get("CROSSDOCK_SIM_SEEDS", "30")) + 1))

KINDS: Final = JOB_KINDS - set(MOVED) - UNMOVED
MOVES: Final = {(kind, move) for kind, moves in USED.items() for move in moves}


def digest(world: World) -> str:
    return sha256(encode_entry(JournalEntry(EVENT_VERSION, 0.0, 0.0, world.log))).hexdigest()


class Runs:
    """The coverage and the digests of each random seed that ran."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self.done: dict[int, str] = {}


@pytest.fixture(scope="module")
def runs() -> Runs:
    return Runs()


def simulate(seed: int, steps: int, folder: Path) -> World:
    world = World(seed, folder)
    try:
        world.run(steps)
    except Exception as error:
        error.add_note("The last events: " + "\n".join(map(repr, world.log[-5:])))
        error.add_note(
            f"Repeat with: CROSSDOCK_SIM_SEED={seed} CROSSDOCK_SIM_STEPS={steps} "
            "python -m pytest tests/model/test_simulation.py -k test_seed"
        )
        raise
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_seed(seed: int, runs: Runs, tmp_path: Path) -> None:
    world = simulate(seed, STEPS, tmp_path)
    assert set(world.coverage.kinds) <= KINDS
    assert set(world.coverage.moves) <= MOVES
    runs.coverage += world.coverage
    runs.done[seed] = digest(world)


@pytest.mark.skipif(ONLY_SEED is not None, reason="a single seed does not cover everything")
def test_the_seeds_see_every_event_and_every_move(runs: Runs, tmp_path: Path) -> None:
    """Adds seeds that did not run in this process until everything is covered."""
    seen = runs.coverage
    for seed in SEEDS:
        if set(seen.kinds) >= KINDS and set(seen.moves) >= MOVES:
            break
        if seed not in runs.done:
            seen += run(seed, STEPS, tmp_path).coverage
    assert KINDS - set(seen.kinds) == set()
    assert MOVES - set(seen.moves) == set()


def test_a_seed_gives_the_same_events_again(runs: Runs, tmp_path: Path) -> None:
    seed = SEEDS[0]
    assert digest(run(seed, STEPS, tmp_path)) == (runs.done.get(seed) or digest(run(seed, STEPS, tmp_path)))


def test_a_seed_gives_the_same_events_in_another_process(tmp_path: Path) -> None:
    """The hash seed of the process changes nothing."""
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.model.simulation import run; from tests.model.test_simulation import digest\n"
        "print(digest(run(7, 300, Path(sys.argv[1]))))"
    )
    digests = set()
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_seed_that_fails_prints_how_to_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that ignores leases fails at the first settlement."""
    readers = {kind: reader for kind, reader in ledger._READERS.items() if kind is not Leased}
    monkeypatch.setattr(ledger, "_READERS", readers)
    with pytest.raises((AssertionError, LookupError)) as caught:
        simulate(1, 200, tmp_path)
    line = "Repeat with: CROSSDOCK_SIM_SEED=1 CROSSDOCK_SIM_STEPS=200 python -m pytest"
    assert caught.value.__notes__[-1].startswith(line)


def test_two_seeds_differ(tmp_path: Path) -> None:
    assert digest(run(1, 100, tmp_path)) != digest(run(2, 100, tmp_path))
