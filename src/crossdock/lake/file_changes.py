"""What all processes that replace files of a lake have in common: a lock, and deletions that survive a crash.

The maintenance process and `crossdock lake erase` run on the server's machine. The lock keeps one from merging a file
that the other erases: the merged file would have the erased rows.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from crossdock.journal.files import sync_dir, write_whole
from crossdock.lake.checksums import BadSum, seal, unseal
from crossdock.lake.table import Lake
from crossdock.model.errors import CrossdockError

_LOCK: Final = "lake.changes"

#: Files to delete after a commit, written before it.
DELETIONS: Final = "lake.deletions"

_LOOK_S: Final = 0.2


class FilesInUse(CrossdockError):
    """Another process replaces files of this lake."""


class _Deletions(msgspec.Struct):
    lake: str  #: id
    paths: list[str]


@contextmanager
def changing_files(data: Path, wait_s: float = 0.0, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock. Raises FilesInUse if another process still holds it after `wait_s`."""
    fd = os.open(data / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    give_up = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= give_up:
                    raise FilesInUse(
                        "the lake's maintenance process is still merging files; nothing was erased from the lake. Run "
                        "the command again in some minutes"
                    ) from None
                waiting()
                time.sleep(_LOOK_S)
        yield
    finally:
        os.close(fd)


def plan_deletions(lake: Lake, data: Path, paths: Sequence[str]) -> None:
    """Record files that are deleted once no version names them, by `finish_deletions` or by the next process."""
    planned = _planned(lake, data)
    body = msgspec.json.encode(_Deletions(lake.id, sorted({*planned, *paths})))
    write_whole(data / DELETIONS, [seal(body)])


def finish_deletions(lake: Lake, data: Path) -> list[str]:
    """Delete the recorded files that the lake's newest version does not name. Returns them."""
    planned = _planned(lake, data)
    if not planned:
        return []
    live = {file.path for file in lake.files()}
    gone = [path for path in planned if path not in live]
    for path in gone:
        lake.store.delete(path)
    (data / DELETIONS).unlink(missing_ok=True)
    sync_dir(data)
    return gone


def _planned(lake: Lake, data: Path) -> list[str]:
    """Without a readable record nothing is deleted here: the maintenance process deletes unnamed files after a day."""
    try:
        body = unseal((data / DELETIONS).read_bytes())
        found = None if body is None else msgspec.json.decode(body, type=_Deletions)
    except (FileNotFoundError, BadSum, msgspec.MsgspecError):
        return []
    return found.paths if found is not None and found.lake == lake.id else []
