"""Upper limits for waits in tests. They are generous, because a shared machine may stall, and no test asserts them."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 120.0

#: For processes that run at the lowest priority: the lake's process and the compactor.
IDLE_PATIENCE_S: Final = 480.0

#: For a program that takes a minute on an idle machine: Spark in a JVM, a benchmark, a client in another language.
PROGRAM_PATIENCE_S: Final = 3_600.0


def wait_until(true: Callable[[], object], what: str | Callable[[], str], seconds: float = PATIENCE_S) -> None:
    """Wait until `true` returns a true value, or fail with `what`. A callable `what` is evaluated only then."""
    give_up = time.monotonic() + seconds
    while not true():
        if time.monotonic() > give_up:
            raise AssertionError(f"timeout while waiting for: {what if isinstance(what, str) else what()}")
        time.sleep(0.01)
