"""The data directory: its files, and the lock that keeps a second server out."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from crossdock.model.errors import CrossdockError

DATABASE: Final = "journal.db"
LOCK: Final = "lock"
BALLAST: Final = "ballast"


class DataDirInUse(CrossdockError):
    """Another server has this data directory open."""


class NotADirectory(CrossdockError):
    """A file is where the data directory, or a directory above it, should be."""


def snapshot_name(seq: int) -> str:
    return f"snapshot-{seq:016d}"


def snapshot_numbers(folder: Path) -> list[int]:
    """The last entry of each finished snapshot in the data directory, in no order."""
    return [int(path.name.removeprefix("snapshot-")) for path in folder.glob("snapshot-*") if path.name[9:].isdigit()]


def in_use_by(folder: Path, table: Path = Path("/proc/locks"), lock: str = LOCK) -> str:
    """The id of the process that holds the lock file of this directory. "": none does.

    It is looked up in the system's table of locks. Trying the lock could make a starting server fail.
    """
    try:
        inode = str((folder / lock).stat().st_ino)
        locks = table.read_text("ascii")
    except OSError:
        return ""
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
            return words[4]
    return ""


def existing(path: Path) -> Path:
    """The path, or the nearest directory above it that exists: the rest will be created there."""
    path = path.absolute()
    return next(candidate for candidate in (path, *path.parents) if candidate.exists()).resolve()


def not_a_directory(path: Path) -> str:
    """Why the path cannot be a data directory. "": it is a directory, or it can be created."""
    path = path.absolute()
    there = next(each for each in (path, *path.parents) if each.exists() or each.is_symlink())
    if there.is_dir():
        return ""
    if there.exists():
        return f"{there.resolve()} is not a folder; set server.data to one"
    return f"{there} links to {there.readlink()}, which does not exist; mount its disk, or set server.data to a folder"


def _make(path: Path) -> list[Path]:
    """Create the directory and missing ones above it. Returns those that were created, the outermost first."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    made: list[Path] = []
    try:
        for each in reversed(missing):
            try:
                each.mkdir(mode=0o700 if each == path else 0o777)
            except FileExistsError:
                if each.is_dir():  # another server has just created it
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
    """Remove the directories that are empty."""
    for each in reversed(made):
        with suppress(OSError):
            each.rmdir()


class DataDir:
    """A data directory. It is created if it is missing, and only its owner may access it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._made = _make(path)  #: directories that a failed start removes again
        self._lock: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether this object created the directory, and nothing was served from it yet."""
        return bool(self._made)

    def keep(self) -> None:
        """From now on the directory is never removed."""
        self._made = []

    def discard(self) -> None:
        """Remove the directory and those above it that this object created: the start failed, and nothing was served.

        The lock file is removed last. Without the lock no process writes here, so all other files are this server's
        own. Another server that starts meanwhile finds the lock taken, or a missing directory.
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
        """Lock the directory until `unlock` or the end of the process. A crash leaves nothing to clean up."""
        import fcntl  # the command line imports this module on Windows, too

        fd = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(fd)
            raise DataDirInUse(
                f"{self.path} is in use by process {holder}; stop it, or choose another folder with --data"
            ) from error
        try:
            is_there = os.stat(self.path / LOCK).st_ino == os.fstat(fd).st_ino
        except OSError:
            is_there = False
        if not is_there:  # a failed start removed it after this process opened it
            os.close(fd)
            raise DataDirInUse(f"{self.path} was removed by another server that failed to start; try again")
        with suppress(OSError):  # a full disk has no space for the process id; the lock needs none
            pid = b"%d\n" % os.getpid()
            os.ftruncate(fd, os.pwrite(fd, pid, 0))  # truncated last: the freed space may be used up at once
        self._lock = fd

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
