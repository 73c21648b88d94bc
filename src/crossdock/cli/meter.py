"""Progress of long work, on one line of a terminal; programs and log files are spared it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from crossdock.journal.files import Progress


@contextmanager
def meter() -> Iterator[Progress]:
    """Calls with what is done, how much of it and of how much. The line is gone when the work is over.

    SIGTERM interrupts the work as Ctrl-C does: what was begun is cleared away.
    """
    shown = 0
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)

    def show(what: str, done: int, of: int) -> None:
        nonlocal shown
        line = f"{what} {100 * done // max(of, 1)} %"
        sys.stderr.write("\r" + line.ljust(shown))
        sys.stderr.flush()
        shown = len(line)

    def nothing(what: str, done: int, of: int) -> None:
        pass

    try:
        yield show if sys.stderr.isatty() else nothing
    finally:
        signal.signal(signal.SIGTERM, before)
        if shown:
            sys.stderr.write("\r" + " " * shown + "\r")
            sys.stderr.flush()
