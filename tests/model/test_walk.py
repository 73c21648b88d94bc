"""Long seeded walks of the engine beside the reference: states that Hypothesis' short ones hardly reach.

CROSSDOCK_WALK_STEPS   steps of a walk (nightly: 100,000)
"""

import pytest

from tests.model.walk import LOOK_EVERY, STEPS, Walk
from tests.support.picture import picture


@pytest.mark.parametrize("seed", range(1, 7))
def test_walk(seed: int) -> None:
    walk = Walk(seed)
    for step in range(STEPS):
        walk.step()
        if step % LOOK_EVERY == 0:
            walk.look()
    walk.look()
    assert picture(walk.rig.replayed) == picture(walk.rig.state)
