"""How long a test waits for what must come. Nobody asserts it: a machine that others use may stand still a while."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 120.0

#: For what a process does that takes only the time others leave: the lake's, and the compactor.
IDLE_PATIENCE_S: Final = 480.0

#: For a program that runs for a minute on an idle machine: a JVM with Spark, a benchmark, a client of another language.
PROGRAM_PATIENCE_S: Final = 3_600.0


def wait_until(true: Callable[[], object], what: str | Callable[[], str], seconds: float = PATIENCE_S) -> None:
    """`what` did not come, if it never becomes true; it may look for its words then."""
    give_up = time.monotonic() + seconds
    while not true():
        if time.monotonic() > give_up:
            raise AssertionError(f"waited in vain: {what if isinstance(what, str) else what()}")
        time.sleep(0.01)
