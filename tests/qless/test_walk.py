"""Random walks: whatever is called in whatever order, the state is whole, and the journal gives it back."""

from itertools import product
from pathlib import Path
from typing import Final

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.memory import Memory
from crossdock.model.events import Recurred, Surfaced
from crossdock.wire.redis.qless.dialect import THROTTLES, UNIFIED, UNIFIED_2013, Dialect
from tests.model import invariants
from tests.model.coverage import MOVED, UNMOVED, Coverage
from tests.qless.test_replay import from_snapshot, replayed
from tests.qless.walk import Walk
from tests.support.desk import stored
from tests.support.picture import picture

SEEDS: Final = range(12)
STEPS: Final = 2_000
DIALECTS: Final = (UNIFIED, THROTTLES, UNIFIED_2013)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_leaves_everything_whole(seed: int, dialect: Dialect, tmp_path: Path) -> None:
    walk = Walk(seed, dialect)
    for step in range(STEPS):
        walk.step()
        if not step % 20:
            invariants.check(walk.desk.memory)
    invariants.check(walk.desk.memory)
    assert picture(replayed(walk.desk)) == picture(walk.desk.memory)
    assert picture(from_snapshot(walk.desk.memory, tmp_path)) == picture(walk.desk.memory)


def test_the_walks_saw_every_move() -> None:
    seen = Coverage()
    for seed, dialect in product(SEEDS, DIALECTS):
        walk = Walk(seed, dialect)
        for _ in range(STEPS):
            walk.step()
        memory = Memory()
        for event in stored(walk.desk.events):
            before = seen.before(memory, event)
            apply(memory, event)
            seen.after(memory, event, before)
    assert set(seen.kinds) >= set(MOVED) - {Surfaced} | UNMOVED
    moves = {(kind, move) for kind, move in seen.moves if kind in MOVED}
    every = {(kind, move) for kind, moves in MOVED.items() for move in moves}
    assert moves <= every
    # A name was taken already, or a script had left something behind.
    rare = {each for each in every if each[0] is Surfaced or (each[0] is Recurred and each[1][0] is not None)}
    assert every - moves <= rare
