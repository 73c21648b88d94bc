"""A pipeline that kills itself at a commit.

python -m tests.pipeline.mortal run|stream LAKE TABLES N before|after CLASSES
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake

from crossdock.pipeline import ledger
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.run import run
from crossdock.pipeline.session import start
from crossdock.pipeline.stream import Stream
from tests.pipeline.conftest import SMALL


class Mortal:
    """Counts the commits of all tables; the n-th is the last thing that happens, or the last that does not."""

    def __init__(self, left: int, when: str) -> None:
        self.left, self.when = left, when

    def wrap(self, real: Callable[..., None]) -> Callable[..., None]:
        def commit(*args: Any, **kwargs: Any) -> None:
            self.left -= 1
            if self.left == 0 and self.when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            real(*args, **kwargs)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        return commit


def main(verb: str, lake: Path, tables: Path, n: int, when: str, classes: Path) -> None:
    mortal = Mortal(n, when)
    works = PipelineContext(start("local[1]", SMALL, classes), lake, tables)
    works.prepare()
    DeltaTable.create_write_transaction = mortal.wrap(DeltaTable.create_write_transaction)  # type: ignore[method-assign]
    ledger.write_deltalake = mortal.wrap(write_deltalake)  # type: ignore[attr-defined]
    if verb == "run":
        run(works)
    else:
        Stream(works, every_s=0.2, refresh_s=0.5).run(threading.Event())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5], Path(sys.argv[6]))
