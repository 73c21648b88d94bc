"""A server with special jobs: cron entries run five times a second, and one queue is throttled.

python -m tests.support.special_server FAULT up --data DIR …

none                no fault: cron entries run often
late-callbacks      a batch's callbacks are created some hundred commands after the change that triggers them
repeated-cron       each start finds the last run due again
ignored-locks       unique locks are not checked
ignored-throttles   no queue is ever full
"""

import itertools
import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from crossdock.engine.engine import Engine
from crossdock.engine.jobs import enqueue
from crossdock.engine.records import schedules
from crossdock.model.clock import Now
from crossdock.model.commands.core import Follow, FollowUp, Succeed
from crossdock.model.records import Throttle
from tests.support.server import Server

#: Seconds between two runs of a cron entry.
EVERY_S: Final = 0.2
CRON: Final = ("first", "second", "third")
THROTTLED: Final = 2
THROTTLE_S: Final = 1.0

_ENTRY: Final = (
    '[[cron]]\nschedule = "* * * * *"\nname = "{0}"\n[cron.job]\ntype = "{0}"\nqueue = "cron"\nargs = ["{0}"]\n'
)
_CONFIG: Final = f"[throttles]\nthrottled = {{ concurrency = {THROTTLED}, timeout = {THROTTLE_S} }}\n" + "".join(
    _ENTRY.format(name) for name in CRON
)


class SpecialServer(Server):
    def __init__(self, data: Path, fault: str = "none") -> None:
        config = data.with_name("crossdock.toml")
        config.write_text(_CONFIG)
        super().__init__(data, {"config": config}, fault)

    def spawn(self) -> None:
        program = (sys.executable, "-m", "tests.support.special_server", self._fault)
        self._process = subprocess.Popen(
            [*program, "up", "--data", str(self.data), *self._listen()],
            cwd=Path(__file__).parents[2],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )


def often(schedule: str, zone: str, after: float) -> float:
    return (math.floor(after / EVERY_S) + 1) * EVERY_S


def late_callbacks() -> None:
    follow = Engine.execute
    waiting: list[FollowUp] = []
    commands = 0

    def patched(self: Engine, command: Any, now: Now) -> Any:
        nonlocal commands
        self.follow_ups.clear()
        events, outcome, ready_queues = self.decide(command, now)
        for event in events:
            self.apply(event)
        waiting.extend(self.follow_ups)
        self.follow_ups.clear()
        commands += bool(waiting)
        if commands >= 300 and isinstance(command, Succeed):
            commands = 0
            late, waiting[:] = list(waiting), []
            more, _, woken = follow(self, Follow(late), now)
            return [*events, *more], outcome, [*ready_queues, *woken]
        return events, outcome, ready_queues

    Engine.execute = patched  # type: ignore[method-assign]


def repeated_cron() -> None:
    runs = itertools.count(1)

    def again(schedule: str, zone: str, after: float) -> float:
        return often(schedule, zone, after - EVERY_S if next(runs) % 10 == 0 else after)

    schedules.next_run = again


def ignored_locks() -> None:
    enqueue.refusals = lambda state, specs, now, *, unless_live=False: ()


def ignored_throttles() -> None:
    Throttle.full = lambda self, worker, steady: False  # type: ignore[method-assign]


FAULTS: Final = {
    "none": lambda: None,
    "late-callbacks": late_callbacks,
    "repeated-cron": repeated_cron,
    "ignored-locks": ignored_locks,
    "ignored-throttles": ignored_throttles,
}

if __name__ == "__main__":
    schedules.next_run = often
    FAULTS[sys.argv.pop(1)]()
    runpy.run_module("crossdock", run_name="__main__", alter_sys=True)
