"""What clients may ask for, one function a command, drawn by weight from one table.

A new command of the engine is one function and one line in `ACTS`. Everything random comes from the scene's own source,
and nothing is drawn from a set or by a hash, so a seed always gives the same commands.
"""

from itertools import accumulate
from typing import Any, Final

from crossdock.model.commands import core as c
from tests.model.acts import hands, pushing, working
from tests.model.acts.scene import Act, Client, Scene

ACTS: Final[tuple[tuple[int, Act], ...]] = (
    (120, pushing.push),
    (40, pushing.push_later),
    (12, pushing.push_bulk),
    (300, working.lease),
    (180, working.succeed),
    (45, working.fail),
    (20, working.settle_of_another),
    (20, working.settle_again),
    (80, working.settle_freely),
    (25, pushing.transact),
    (3, pushing.draw_numbers),
    (10, working.give_back),
    (10, working.lose_lease),
    (10, hands.requeue),
    (10, hands.bury),
    (12, hands.remove),
    (8, hands.reroute),
    (3, hands.remove_ready),
    (3, hands.bury_ready),
    (3, hands.pause),
    (6, hands.resume),
    (3, hands.forget),
    (1, hands.flush),
    (14, hands.open_group),
    (25, hands.commit_group),
    (14, working.track),
    (2, hands.set_throttles),
    (2, hands.set_recurrences),
    (60, hands.tick),
)
_WEIGHTS: Final = list(accumulate(weight for weight, _ in ACTS))
_FUNCTIONS: Final = [act for _, act in ACTS]


def draw(scene: Scene) -> tuple[Client, c.Command[Any]]:
    """The next command and who sends it."""
    while True:
        client = scene.one_of(scene.clients)
        act = scene.random.choices(_FUNCTIONS, cum_weights=_WEIGHTS)[0]
        command = act(scene, client)
        if command is not None:
            return client, command
