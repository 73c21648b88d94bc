"""A server for jobs with special terms: cron entries are due five times a second, and one queue is throttled.

    python special_server.py FAULT up --data DIR …

    none             cron runs often, that is all
    late-callbacks   what a group calls for is found a while after the change that called for it: a crash forgets it
    eager-cron       a run that was due is found again by the next start
    deaf-locks       nobody asks whether a lock is held
"""

import math
import runpy
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from crossdock.engine import enqueue, recur
from crossdock.engine.engine import Engine
from tests.support.server import Server

#: Seconds between two runs of a cron entry.
EVERY_S: Final = 0.2
THROTTLED: Final = 2
THROTTLE_S: Final = 1.0
CRON: Final = ("first", "second", "third")

_CONFIG: Final = f"""
[throttles]
throttled = {{ concurrency = {THROTTLED}, timeout = {THROTTLE_S} }}
""" + "".join(
    f'\n[[cron]]\nschedule = "* * * * *"\nname = "{name}"\n[cron.job]\ntype = "{name}"\nqueue = "cron"\nargs = ["{name}"]\n'
    for name in CRON
)


class SpecialServer(Server):
    def __init__(self, data: Path, settings: Mapping[str, object] | None = None, fault: str = "none") -> None:
        config = data.with_suffix(".toml")
        config.write_text(_CONFIG)
        super().__init__(data, {"config": config, **(settings or {})}, fault)

    def spawn(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, self._fault]
            + ["up", "--data", str(self.data), "--listen", "faktory=127.0.0.1:0"],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )


def _often(schedule: str, zone: str, after: float) -> float:
    return (math.floor(after / EVERY_S) + 1) * EVERY_S


def late_callbacks() -> None:
    carry_out = Engine.carry_out

    def patched(self: Engine, command: Any, now: Any) -> Any:
        events, outcome, notices = self.decide(command, now)
        for event in events:
            self.apply(event)
        waiting = self.__dict__.setdefault("waiting", [])
        waiting += self.memory.touched
        self.memory.touched = []
        if len(waiting) > 20:
            self.memory.touched, waiting[:] = list(waiting), []
            more, _, stirred = carry_out(self, command.__class__, now) if False else ([], None, ())
            return [*events, *more], outcome, [*notices, *stirred]
        return events, outcome, notices

    Engine.carry_out = patched  # type: ignore[method-assign]


if __name__ == "__main__":
    pass
