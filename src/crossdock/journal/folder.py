"""The data folder: its files, and the lock that keeps a second server out."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from crossdock.journal.mark import MARK, read_mark
from crossdock.model.errors import CrossdockError

DATABASE: Final = "journal.db"
LOCK: Final = "lock"
BALLAST: Final = "ballast"


class FolderInUse(CrossdockError):
    """Another server has this data folder open."""


class NotAFolder(CrossdockError):
    """A file stands where the data folder should be, or above it."""


def snapshot_name(seq: int) -> str:
    return f"snapshot-{seq:016d}"


def snapshot_numbers(folder: Path) -> list[int]:
    """The last batch of each finished snapshot in the folder, in no order."""
    return [int(path.name.removeprefix("snapshot-")) for path in folder.glob("snapshot-*") if path.name[9:].isdigit()]


def in_use_by(folder: Path, table: Path = Path("/proc/locks")) -> str:
    """The process that has this data folder open as its server, "" if none has.

    Looked up in the system's table of locks: to try the lock could stop a server that is just starting.
    """
    try:
        inode = str((folder / LOCK).stat().st_ino)
        locks = table.read_text("ascii")
    except OSError:
        return ""
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
            return words[4]
    return ""


def widowed(folder: Path) -> str:
    """Why no journal may be begun here: there was one. "": there is a journal, or nothing that one has left.

    SQLite would take a database that is not there for a new one, delete its log and go on without a word.
    """
    database = folder / DATABASE
    if database.exists() and database.stat().st_size:
        return ""
    # The reserve is made when there is a journal, and the mark of batch 0 before there is one.
    files = [path for path in (folder / f"{DATABASE}-wal", folder / BALLAST) if path.exists() and path.stat().st_size]
    if (mark := read_mark(folder)) is not None and mark.seq:
        files.append(folder / MARK)
    left = [path.name for path in (*files, *sorted(folder.glob("snapshot-*[0-9]")))]
    if not left:
        return ""
    return f"{database} is missing or empty, but {left[0]} is there; put {DATABASE} back, or restore a backup"


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there: what does not exist yet will be created in it."""
    path = path.absolute()
    return next(candidate for candidate in (path, *path.parents) if candidate.exists()).resolve()


def not_a_folder(path: Path) -> str:
    """What stands where the data folder should be, or above it. "": a folder, or nothing yet."""
    path = path.absolute()
    there = next(each for each in (path, *path.parents) if each.exists() or each.is_symlink())
    if there.is_dir():
        return ""
    if there.exists():
        return f"{there.resolve()} is not a folder; set server.data to one"
    return f"{there} leads to {there.readlink()}, which is not there; mount its disk, or set server.data to a folder"


class Folder:
    """An existing data folder, created on demand with nobody else allowed in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise NotAFolder(not_a_folder(path)) from error
        self._lock: int | None = None

    def lock(self) -> None:
        """Hold the folder until `unlock` or the end of the process. A crash leaves nothing to clean up."""
        fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise FolderInUse(
                f"{self.path} is in use by process {holder}; stop it, or give this server another folder with --data"
            ) from error
        with suppress(OSError):  # a full disk has no room for it; the lock itself needs none
            pid = b"%d\n" % os.getpid()
            os.ftruncate(fd, os.pwrite(fd, pid, 0))  # in this order: what was cut off may be taken by others
        self._lock = fd

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
