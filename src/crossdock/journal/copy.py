"""Durable copies of a journal and of plain files, for backup and restore.

Written in one go and thrown away on any failure, so SQLite keeps no rollback journal here; synced as they grow, so that
one late sync does not stall the server's own.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from crossdock.journal.sqlite.journal import checksum, is_full

_CHUNK: Final = 1024 * 1024
_SYNC_EVERY: Final = 8 * 1024 * 1024
_ROWS: Final = 500  #: a transaction, if they are small

#: How often somebody who watches is told.
_TELL_S: Final = 0.1

#: What is done, how much of it, of how much.
Progress = Callable[[str, int, int], None]


def write_journal(
    path: Path, tables: Iterable[str], records: dict[str, Sequence[tuple[Any, ...]]], rows: Iterable[tuple[int, bytes]]
) -> None:
    """A new journal with these tables, records and batches. Not in WAL mode: it is at rest, and read as it is."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            for pragma in ("journal_mode=off", "synchronous=off", "locking_mode=exclusive"):
                db.execute(f"pragma {pragma}").fetchall()
            for sql in tables:
                db.execute(sql)
            for table, values in records.items():
                for each in values:
                    db.execute(f"insert into {table} values ({', '.join('?' * len(each))})", each)
            unsynced = 0
            for some in _slices(rows):
                db.execute("begin")
                db.executemany("insert into journal values (?, ?, ?)", some)
                db.execute("commit")
                unsynced += sum(len(batch) for _, _, batch in some)
                if unsynced >= _SYNC_EVERY:
                    os.fdatasync(fd)
                    unsynced = 0
        except apsw.IOError as error:
            if is_full(error, db):  # the caller has no connection to ask
                raise OSError(db.system_errno, os.strerror(db.system_errno), str(path)) from error
            raise
        finally:
            db.close()
        settle(fd)
    finally:
        os.close(fd)


def _slices(rows: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, int, bytes]]]:
    some: list[tuple[int, int, bytes]] = []
    size = 0
    for seq, batch in rows:
        some.append((seq, checksum(seq, batch), batch))
        size += len(batch)
        if len(some) >= _ROWS or size >= _SYNC_EVERY:
            yield some
            some, size = [], 0
    if some:
        yield some


def copy_file(source: Path, dest: Path, progress: Progress) -> None:
    """Once it is open the source may be deleted: what was opened is copied."""
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
                if unsynced >= _SYNC_EVERY:
                    os.fdatasync(fd)
                    unsynced = 0
                progress(source.stem.partition("-")[0], done, max(whole, done))
            settle(fd)
        finally:
            os.close(fd)


def settle(fd: int) -> None:
    """On the disk, and out of memory: who reads it next reads what the disk has."""
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def seldom(progress: Progress) -> Progress:
    """The same, called ten times a second at most; the end of a thing is always told."""
    told = 0.0

    def tell(what: str, done: int, of: int) -> None:
        nonlocal told
        now = time.monotonic()
        if done >= of or now - told >= _TELL_S:
            told = now
            progress(what, done, of)

    return tell
