"""Random walks: calls in any order keep the state consistent, and the journal restores it."""

from itertools import product
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crossdock.engine.engine import apply
from crossdock.engine.index import dependents
from crossdock.engine.state import EngineState
from crossdock.model.commands.core import ResolveDependents
from crossdock.model.commands.qless import FreeHeld
from crossdock.model.events import DependentsPostponed, DependentsResolved, Recurred, Surfaced
from crossdock.protocols.redis.qless.call import Dialect
from tests.model import invariants
from tests.model.coverage import MOVED, UNMOVED, Coverage
from tests.qless.walk import DIALECTS, Walk
from tests.support.dispatcher import stored
from tests.support.picture import picture
from tests.support.recovered_state import from_snapshot

SEEDS: Final = range(12)
STEPS: Final = 2_000


EVERY: Final = {(kind, move) for kind, moves in MOVED.items() for move in moves}
#: Errors for a name that exists, or for a stray entry of a script.
RARE: Final = {each for each in EVERY if each[0] is Surfaced or (each[0] is Recurred and each[1][0] is not None)}


def folded(walk: Walk, seen: Coverage) -> EngineState:
    """The state that the journal restores, and the moves on the way."""
    state = EngineState()
    for event in stored(walk.dispatcher.events):
        before = seen.before(state, event)
        apply(state, event)
        seen.after(state, event, before)
    return state


def unseen(seen: Coverage) -> set[object]:
    return (set(MOVED) - {Surfaced} | UNMOVED) - set(seen.kinds) | EVERY - RARE - set(seen.moves)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_in_one_dialect_keeps_the_state_consistent(seed: int, dialect: Dialect, tmp_path: Path) -> None:
    leaves_everything_whole(Walk(seed, dialect), tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_in_all_dialects_keeps_the_state_consistent(seed: int, tmp_path: Path) -> None:
    leaves_everything_whole(Walk(seed, *DIALECTS), tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_walk_with_deferred_dependents_keeps_the_state_consistent(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dependents, and jobs that a throttle frees, are updated one at a time, some steps later."""
    monkeypatch.setattr(dependents, "AT_ONCE", seed % 2)
    walk = Walk(seed, *DIALECTS)
    step, later = walk.step, Random(seed)

    def with_slices() -> None:
        step()
        if later.random() < 0.3:
            walk.dispatcher.do(later.choice((ResolveDependents(1), FreeHeld(1))))

    monkeypatch.setattr(walk, "step", with_slices)
    leaves_everything_whole(walk, tmp_path)
    if not dependents.AT_ONCE:  # else only a job with two dependents postpones one, and few walks have such a job
        assert {type(event) for event in walk.dispatcher.events} >= {DependentsPostponed, DependentsResolved}
    while walk.dispatcher.state.unresolved or walk.dispatcher.state.owed:
        walk.dispatcher.do(ResolveDependents(7))
        walk.dispatcher.do(FreeHeld(7))
    invariants.check(walk.dispatcher.state)


def leaves_everything_whole(walk: Walk, tmp_path: Path) -> None:
    seen = Coverage()
    for step in range(STEPS):
        walk.step()
        if not step % 20:
            invariants.check(walk.dispatcher.state)
    invariants.check(walk.dispatcher.state)
    assert picture(folded(walk, seen)) == picture(walk.dispatcher.state)
    assert picture(from_snapshot(walk.dispatcher.state, tmp_path)) == picture(walk.dispatcher.state)
    assert {each for each in seen.moves if each[0] in MOVED} <= EVERY


def test_the_walks_cover_every_move() -> None:
    seen = Coverage()
    for seed, dialect in product(SEEDS, DIALECTS):
        walk = Walk(seed, dialect)
        for _ in range(STEPS):
            walk.step()
        folded(walk, seen)
        if not unseen(seen):
            break
    assert unseen(seen) == set()
