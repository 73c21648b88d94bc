"""The lock that allows one writer at a time: a file lock in the tables' folder, which the kernel releases at exit."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from crossdock.lake.location import is_url
from crossdock.pipeline.errors import TablesInUse

_LOOK_S: Final = 0.2


@contextmanager
def writing(location: str | Path, wait_s: float) -> Iterator[None]:
    """Hold the lock. Raises TablesInUse if another process still holds it after `wait_s`. An object store has no locks:
    there a commit that lost a race is refused."""
    if is_url(location):
        yield
        return
    folder = Path(location)
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
                        f"process {holder} is writing the tables in {folder}, and still was after {wait_s:.0f} s: "
                        "wait until it has finished, or stop it (no data is lost), then run this command again"
                    ) from None
                time.sleep(_LOOK_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
