"""Every file write of ours that must survive a power cut. (SQLite does its own.)

A file is written beside its name, synced as it grows, renamed, and its folder synced: it is there whole or not at all.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

#: Sync this often while writing, so that one late sync does not stall the journal's own.
_SYNC_EVERY: Final = 8 * 1024 * 1024

#: A write fails with one of these when the disk is full or the owner's quota is used up.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_whole(path: Path, chunks: Iterable[bytes], leave: int = 0) -> int:
    """Put the chunks into `path`, atomically and durably. Returns the number of bytes.

    `leave` are bytes of the disk that it must not take: rather than that it fails, as on a full one.
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
            if unsynced >= _SYNC_EVERY:
                os.fdatasync(fd)
                unsynced = 0
        os.fsync(fd)
        os.rename(beside, path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    sync_folder(path.parent)
    return written


def sync_folder(folder: Path) -> None:
    """Make renames and new names in this folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def reserve(path: Path, size: int) -> None:
    """A file of real blocks, to be deleted when the disk is full."""
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


def has_room(folder: Path, size: int = 64 * 1024) -> bool:
    """Whether a file of this size can still be made there. Tried out: what is said to be free may be root's alone, or
    more than a quota leaves."""
    path = folder / "room.tmp"
    try:
        reserve(path, size)
    except OSError as error:
        return error.errno not in NO_ROOM
    path.unlink()
    return True


def free_bytes(folder: Path) -> int:
    stat = os.statvfs(folder)
    return stat.f_bavail * stat.f_frsize


def total_bytes(folder: Path) -> int:
    stat = os.statvfs(folder)
    return stat.f_blocks * stat.f_frsize
