"""Draws the next command of a simulation or a walk by weight from a table of functions.

A new command of the engine needs one function and one line in `ACTS`. All randomness comes from the scene's own source
and nothing depends on the order of a set or on a hash, so a seed always gives the same commands.
"""

from itertools import accumulate
from typing import Any, Final

from crossdock.model.commands import core as c
from tests.model.acts import admin, pushing, working
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
    (80, working.settle_without_lease),
    (25, pushing.transact),
    (3, pushing.draw_numbers),
    (10, working.give_back),
    (10, working.lose_lease),
    (10, admin.requeue),
    (10, admin.bury),
    (12, admin.remove),
    (8, admin.reroute),
    (3, admin.remove_ready),
    (3, admin.bury_ready),
    (3, admin.pause),
    (6, admin.resume),
    (3, admin.forget),
    (1, admin.flush),
    (14, admin.open_group),
    (25, admin.commit_group),
    (14, working.track),
    (2, admin.set_throttles),
    (2, admin.set_schedules),
    (60, admin.tick),
)
_WEIGHTS: Final = list(accumulate(weight for weight, _ in ACTS))
_FUNCTIONS: Final = [act for _, act in ACTS]


def draw(scene: Scene) -> tuple[Client, c.Command[Any]]:
    """The next command and the client that sends it."""
    while True:
        client = scene.one_of(scene.clients)
        act = scene.random.choices(_FUNCTIONS, cum_weights=_WEIGHTS)[0]
        command = act(scene, client)
        if command is not None:
            return client, command
