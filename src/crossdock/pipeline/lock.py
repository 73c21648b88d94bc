"""One writer at a time: a lock on a file in the tables' folder, which the system frees when its holder dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from crossdock.pipeline.errors import TablesInUse

_LOOK_S: Final = 0.2


@contextmanager
def writing(folder: Path, wait_s: float) -> Iterator[None]:
    """Raises TablesInUse if another process still writes after `wait_s`."""
    folder.mkdir(parents=True, exist_ok=True)
    give_up = time.monotonic() + wait_s
    descriptor = os.open(folder / "_lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                    raise TablesInUse(
                        f"process {holder} is writing the tables in {folder}, and was for {wait_s:.0f} s: "
                        "wait until it is done, or stop it (nothing is lost by that), and start this again"
                    ) from None
                time.sleep(_LOOK_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
