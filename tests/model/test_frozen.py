"""Only `apply` writes state: walks with an engine that fails when a decision changes something."""

from pathlib import Path

import pytest

from crossdock.engine.engine import Engine
from crossdock.model.commands.core import DrawNumbers
from tests.model.resqu_walk import Walk as ResquWalk
from tests.model.rig import Rig
from tests.model.walk import Walk
from tests.support.frozen import freeze


@pytest.mark.parametrize("seed", range(3))
def test_no_decision_of_a_walk_changes_the_state(seed: int) -> None:
    walk = Walk(seed)
    freeze(walk.rig.engine)
    for _ in range(300):
        walk.step()


@pytest.mark.parametrize("seed", range(3))
def test_no_decision_of_a_resqu_walk_changes_the_state(seed: int, tmp_path: Path) -> None:
    walk = ResquWalk(seed, tmp_path)
    freeze(walk.rig.engine)
    for _ in range(300):
        walk.step()


def test_a_decision_that_writes_is_found() -> None:
    rig = Rig()

    def writes(state: object, command: object, now: object) -> object:
        rig.state.counters.number += 1
        return (), None, ()

    rig.engine._decide[DrawNumbers] = writes  # type: ignore[assignment]
    freeze(rig.engine)
    with pytest.raises(AssertionError, match="DrawNumbers changed the state"):
        Engine.execute(rig.engine, DrawNumbers(1), rig.clock.now)
