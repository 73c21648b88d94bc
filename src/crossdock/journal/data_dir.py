"""The data directory: its files, and the lock that keeps a second server out."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from crossdock.journal.errors import DataDirInUse, NotADirectory

DATABASE: Final = "journal.db"
LOCK: Final = "lock"
BALLAST: Final = "ballast"


def snapshot_name(seq: int) -> str:
    return f"snapshot-{seq:016d}"


def snapshot_numbers(folder: Path) -> list[int]:
    """The last entry of each finished snapshot in the data directory, in no order."""
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


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there: what does not exist yet will be created in it."""
    path = path.absolute()
    return next(candidate for candidate in (path, *path.parents) if candidate.exists()).resolve()


def not_a_directory(path: Path) -> str:
    """What stands where the data folder should be, or above it. "": a folder, or nothing yet."""
    path = path.absolute()
    there = next(each for each in (path, *path.parents) if each.exists() or each.is_symlink())
    if there.is_dir():
        return ""
    if there.exists():
        return f"{there.resolve()} is not a folder; set server.data to one"
    return f"{there} leads to {there.readlink()}, which is not there; mount its disk, or set server.data to a folder"


def _make(path: Path) -> list[Path]:
    """The folder and those above it, as far as they are not there: those that were made, the outermost first."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    made: list[Path] = []
    try:
        for each in reversed(missing):
            try:
                each.mkdir(mode=0o700 if each == path else 0o777)
            except FileExistsError:
                if each.is_dir():  # another server made it just now
                    continue
                raise
            made.append(each)
        if not path.is_dir():
            raise NotADirectoryError
    except OSError as error:
        _unmake(made)
        if isinstance(error, FileExistsError | NotADirectoryError):
            raise NotADirectory(not_a_directory(path)) from error
        raise
    return made


def _unmake(made: list[Path]) -> None:
    """Those that are empty."""
    for each in reversed(made):
        with suppress(OSError):
            each.rmdir()


class DataDir:
    """An existing data folder, created on demand with nobody else allowed in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made = _make(path)  #: folders that a failed start is to remove again
        self._lock: int | None = None

    @property
    def is_new(self) -> bool:
        """This made it, and nothing was served from it yet."""
        return bool(self._made)

    def keep(self) -> None:
        """Whatever happens from now on, the folder stays."""
        self._made = []

    def discard(self) -> None:
        """The start failed before anything was served: remove the folder and those above it, if this made them.

        The lock goes last. Nobody without it writes here, so that all else is this server's own, and it is held to the
        end: another server that comes meanwhile finds it taken, or a folder that it has to make again.
        """
        if self.path in self._made and self._lock is not None:
            with suppress(OSError):
                for each in [each for each in self.path.iterdir() if each.name != LOCK]:
                    if each.is_dir() and not each.is_symlink():
                        shutil.rmtree(each, ignore_errors=True)
                    else:
                        each.unlink(missing_ok=True)
                (self.path / LOCK).unlink(missing_ok=True)
        _unmake(self._made)
        self.keep()
        self.unlock()

    def lock(self) -> None:
        """Hold the folder until `unlock` or the end of the process. A crash leaves nothing to clean up."""
        fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise DataDirInUse(
                f"{self.path} is in use by process {holder}; stop it, or give this server another folder with --data"
            ) from error
        try:
            is_there = os.stat(self.path / LOCK).st_ino == os.fstat(fd).st_ino
        except OSError:
            is_there = False
        if not is_there:  # a start that failed removed it while this one opened it
            os.close(fd)
            raise DataDirInUse(f"{self.path} was just removed by a server that could not start; try again")
        with suppress(OSError):  # a full disk has no room for it; the lock itself needs none
            pid = b"%d\n" % os.getpid()
            os.ftruncate(fd, os.pwrite(fd, pid, 0))  # in this order: what was cut off may be taken by others
        self._lock = fd

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
