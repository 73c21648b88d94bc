"""Durable file writes: whole files, copies for backup and restore, and reserved disk space.

A file is written under a temporary name, synced as it grows, and renamed; then its directory is synced. So it exists
completely or not at all. SQLite does its own syncing.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

#: Bytes after which a growing file is synced, so that one late sync does not delay those of the journal.
SYNC_EVERY: Final = 8 * 1024 * 1024

#: A write fails with one of these when the disk is full or the owner's quota is used up.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_whole(path: Path, chunks: Iterable[bytes], leave: int = 0) -> int:
    """Write the chunks to `path`, atomically and durably. Returns the number of bytes.

    It fails as on a full disk if less than `leave` bytes would stay free.
    """
    beside = path.with_name(path.name + ".tmp")
    written = unsynced = 0
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        for chunk in chunks:
            if leave and free_bytes(path.parent) < leave + len(chunk):
                raise OSError(errno.ENOSPC, f"less than {leave // 1024} KiB would be left on the disk", str(path))
            view = memoryview(chunk)
            while view:
                done = os.write(fd, view)
                view = view[done:]
                written += done
                unsynced += done
            if unsynced >= SYNC_EVERY:
                os.fdatasync(fd)
                unsynced = 0
        os.fsync(fd)
        os.rename(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    sync_dir(path.parent)
    return written


def sync_dir(directory: Path) -> None:
    """Make renames and new names in this directory durable."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def reserve(path: Path, size: int) -> None:
    """Create a file with allocated blocks. It is deleted when the disk is full."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size < size:
            os.posix_fallocate(fd, 0, size)
            os.fsync(fd)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def has_room(directory: Path, size: int = 64 * 1024) -> bool:
    """Whether a file of this size can be created there. It is tried: free space may be reserved for root, or exceed a
    quota."""
    path = directory / "room.tmp"
    try:
        reserve(path, size)
    except OSError as error:
        return error.errno not in NO_ROOM
    path.unlink()
    return True


def is_no_room(error: BaseException) -> bool:
    """Whether a write failed because the disk is full."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def free_bytes(directory: Path) -> int:
    stat = os.statvfs(directory)
    return stat.f_bavail * stat.f_frsize


def total_bytes(directory: Path) -> int:
    stat = os.statvfs(directory)
    return stat.f_blocks * stat.f_frsize


_CHUNK: Final = 1024 * 1024

#: Least seconds between two calls of a throttled progress function.
_REPORT_EVERY_S: Final = 0.1

#: Called with the part of the work, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def copy_file(source: Path, dest: Path, progress: Progress) -> None:
    """Copy a file durably. The source may be deleted once it is open."""
    with source.open("rb") as file:
        whole = os.fstat(file.fileno()).st_size
        fd = os.open(dest, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            done = unsynced = 0
            while chunk := file.read(_CHUNK):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(fd, view) :]
                done += len(chunk)
                unsynced += len(chunk)
                if unsynced >= SYNC_EVERY:
                    os.fdatasync(fd)
                    unsynced = 0
                progress(source.stem.partition("-")[0], done, max(whole, done))
            sync_uncached(fd)
        finally:
            os.close(fd)


def sync_uncached(fd: int) -> None:
    """Sync a file and drop it from the page cache, so that the next read comes from the disk."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def throttled(progress: Progress) -> Progress:
    """The same function, called ten times a second at most. The end of each part is always reported."""
    reported = 0.0

    def report(what: str, done: int, of: int) -> None:
        nonlocal reported
        now = time.monotonic()
        if done >= of or now - reported >= _REPORT_EVERY_S:
            reported = now
            progress(what, done, of)

    return report
