"""A data folder seen from beside: read-only and in short statements, whether its server runs or not.

Backup and check read through this. A running server goes on writing, compacting and trimming meanwhile, so what was
there a moment ago may be gone: rows and snapshots that a newer snapshot has made superfluous.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from crossdock.journal.folder import DATABASE, LOCK, Folder
from crossdock.journal.sqlite import _FORMAT, SqliteJournal, checksum
from crossdock.model.errors import CrossdockError, Damaged

_PAGE: Final = 250  # rows a statement: more would pin the write-ahead log
_PAGE_BYTES: Final = 8 * 1024 * 1024


class NoJournal(CrossdockError):
    """There is nothing to read; the text says where, and what to do."""


class Reader(SqliteJournal):
    def __init__(self, path: Path) -> None:
        database = path / DATABASE
        if not database.is_file() or not database.stat().st_size:
            raise NoJournal(f"{path} holds no journal ({DATABASE}); name the folder of a server's data")
        if not os.access(database, os.R_OK):
            raise NoJournal(f"{database} may not be read by this user; try again as the one the server runs as")
        self._scratch = [path / f"{DATABASE}-wal", path / f"{DATABASE}-shm"]
        self._was_clean = not any(file.exists() for file in self._scratch)
        try:
            super().__init__(Folder(path), read_only=True)
        except CrossdockError:
            self._clean_up()
            raise

    def whole(self) -> None:
        """As the server does it before it starts: the tables are ours, and SQLite finds its pages sound."""
        try:
            if self._is_new():
                raise NoJournal(f"{self._folder.path / DATABASE} is empty: no server has used it yet")
            stored = self.format
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(f"the journal cannot be read: {error}; restore a backup") from error
        if stored != _FORMAT:
            raise Damaged(f"this journal has format {stored}; this program reads {_FORMAT}: use a newer Crossdock")

    @property
    def format(self) -> int:
        return int(self._scalar("select value from meta where key = 'format'") or 0)

    @property
    def first(self) -> int:
        """The oldest batch that is there, 0: none is."""
        return int(self._scalar("select min(seq) from journal") or 0)

    @property
    def batches(self) -> int:
        return int(self._scalar("select count(*) from journal"))

    @property
    def previous(self) -> int:
        """The snapshot before the newest. Nothing behind it is ever trimmed."""
        return self._snapshot_seq("previous")

    def tables(self) -> list[str]:
        return [sql for (sql,) in self._db.execute("select sql from sqlite_schema order by rowid")]

    def holds(self) -> list[tuple[str, int]]:
        return [(name, seq) for name, seq in self._db.execute("select name, seq from hold")]

    def rows(self, after: int) -> Iterator[tuple[int, int, Any]]:
        """Sequence number, checksum and bytes of what is there behind `after`, unchecked: a few megabytes at a time."""
        while True:
            sizes: list[Any] = self._db.execute(
                "select seq, length(batch) from journal where seq > ? order by seq limit ?", (after, _PAGE)
            ).fetchall()
            if not sizes:
                return
            until, left = 0, _PAGE_BYTES
            for seq, size in sizes:
                if until and size > left:
                    break
                until, left = seq, left - size
            rows: list[Any] = self._db.execute(
                "select seq, crc, batch from journal where seq > ? and seq <= ? order by seq", (after, until)
            ).fetchall()
            yield from rows
            after = until

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        try:
            for seq, crc, batch in self.rows(after):
                if seq != after + 1:
                    raise Damaged(f"batches {after + 1} to {seq - 1} are missing from the journal; restore a backup")
                if not sound(seq, crc, batch):
                    raise Damaged(f"batch {seq} fails its checksum; restore a backup")
                yield seq, batch
                after = seq
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(f"batch {after + 1} cannot be read: {error}; restore a backup") from error

    def close(self) -> None:
        super().close()
        self._clean_up()

    def _clean_up(self) -> None:
        """SQLite makes two files beside a journal at rest when it is read. Take them away unless a server came."""
        if not self._was_clean:
            return
        try:
            lock = os.open(self._folder.path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._scratch[0].exists() or self._scratch[0].stat().st_size == 0:
                for file in self._scratch:
                    file.unlink(missing_ok=True)
        except OSError:
            pass  # in use, or on a read-only disk: they do no harm
        finally:
            os.close(lock)


def sound(seq: int, crc: object, batch: object) -> bool:
    return isinstance(batch, bytes) and crc == checksum(seq, batch)
