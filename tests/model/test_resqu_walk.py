"""Long seeded walks that compare Resqu's commands in the engine with their reference, with restarts from the journal
and from snapshots.

CROSSDOCK_WALK_STEPS   steps per walk (nightly: 100,000)
"""

from pathlib import Path

import pytest

from crossdock.model.commands import resqu
from crossdock.model.events import AnyEvent
from tests.model.coverage import RESQU_KINDS
from tests.model.resqu_reference.commands import RULES
from tests.model.resqu_walk import COMPARE_EVERY, SEEDS, STEPS, Walk
from tests.model.rig import Rig
from tests.support.picture import picture


@pytest.mark.parametrize("seed", SEEDS)
def test_walk(seed: int, tmp_path: Path) -> None:
    walk = Walk(seed, tmp_path)
    for step in range(STEPS):
        walk.step()
        if step % COMPARE_EVERY == 0:
            walk.compare()
    walk.compare()
    assert picture(walk.rig.replayed) == picture(walk.rig.state)


def test_walks_see_every_kind_of_event(tmp_path: Path) -> None:
    seen: set[type[AnyEvent]] = set()
    for seed in SEEDS:
        walk = Walk(seed, tmp_path)
        for _ in range(1_500):
            walk.step()
        seen |= {type(event) for event in walk.rig.events}
    assert seen >= RESQU_KINDS


def test_every_command_has_its_rule_in_the_reference() -> None:
    commands = {command for command in Rig().engine._decide if command.__module__ == resqu.__name__}
    assert commands <= set(RULES)
