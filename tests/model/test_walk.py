"""Long seeded walks that compare the engine with the reference. They reach states that Hypothesis's short runs rarely
reach.

CROSSDOCK_WALK_STEPS   steps per walk (nightly: 100,000)
"""

import pytest

from tests.model.walk import COMPARE_EVERY, STEPS, Walk
from tests.support.picture import picture


@pytest.mark.parametrize("seed", range(1, 7))
def test_walk(seed: int) -> None:
    walk = Walk(seed)
    for step in range(STEPS):
        walk.step()
        if step % COMPARE_EVERY == 0:
            walk.compare()
    walk.compare()
    assert picture(walk.rig.replayed) == picture(walk.rig.state)
