"""`crossdock pipeline run` or `stream` in a process that kills itself, or its JVM.

python -m tests.pipeline.mortal run|stream LAKE TABLES before|after|moment|jvm N CLASSES

* before, after: SIGKILL before or after the N-th commit.
* moment, jvm: SIGKILL of this process, or of the JVM, N milliseconds after the first batch has begun.

A stream that has nothing left to commit is killed after a while.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from deltalake import DeltaTable
from pyspark import SparkContext

from crossdock.cli.main import main
from crossdock.pipeline import run as running
from crossdock.pipeline.ingest import Ingested
from crossdock.pipeline.ingest import ingest as real_ingest
from tests.pipeline.clusters import flags
from tests.pipeline.conftest import SMALL

_LONGEST_S = 60.0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_jvm() -> None:
    gateway: Any = SparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)


def at_commit(left: int, when: str) -> None:
    """Die before or after a commit of any table."""
    real = DeltaTable.create_write_transaction

    def commit(*args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            die()
        real(*args, **kwargs)
        if left == 0:
            die()

    DeltaTable.create_write_transaction = commit  # type: ignore[method-assign]


def after_ms(n: int, kill: Callable[[], None]) -> None:
    """Kill this long after the first batch has begun."""
    begun = threading.Event()

    def ingest(*args: Any) -> Ingested:
        begun.set()
        return real_ingest(*args)

    def wait() -> None:
        begun.wait()
        time.sleep(n / 1_000)
        kill()

    running.ingest = ingest  # type: ignore[attr-defined, assignment]
    threading.Thread(target=wait, daemon=True).start()


def limit() -> None:
    timer = threading.Timer(_LONGEST_S, die)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    verb, lake, tables, how, number, classes = sys.argv[1:]
    if how in ("before", "after"):
        at_commit(int(number), how)
    else:
        after_ms(int(number), kill_jvm if how == "jvm" else die)
    words = ["pipeline", verb, "--lake", lake, "--tables", tables, "--master", "local[1]", "--cds", classes]
    if verb == "stream":
        words += ["--every", "0.2", "--refresh", "1"]
        limit()
    sys.exit(main([*words, *flags(SMALL)]))
