"""A data folder seen from beside: read-only and in short statements, whether its server runs or not.

Backup and check read through this. A running server goes on writing, compacting and trimming meanwhile, so what was
there a moment ago may be gone: rows and snapshots that a newer snapshot has made superfluous.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

import apsw

from crossdock.journal import completeness
from crossdock.journal.completeness import refuse_incomplete
from crossdock.journal.data_dir import DATABASE, LOCK, Folder
from crossdock.journal.durable_mark import Found
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.schema import is_sound
from crossdock.model.errors import CrossdockError, Damaged


class NoJournal(CrossdockError):
    """There is nothing to read; the text says where, and what to do."""


class Reader(SqliteJournal):
    def __init__(self, path: Path) -> None:
        database = path / DATABASE
        if not database.is_file() or not database.stat().st_size:
            only = ", only a lock file: a server there begins empty" if (path / LOCK).exists() else ""
            raise NoJournal(f"{path} holds no journal ({DATABASE}){only}; name the folder of a server's data")
        if not os.access(database, os.R_OK):
            raise NoJournal(f"{database} may not be read by this user; try again as the one the server runs as")
        self._scratch = [path / f"{DATABASE}-wal", path / f"{DATABASE}-shm"]
        self._was_clean = not any(file.exists() for file in self._scratch)
        try:
            super().__init__(Folder(path), read_only=True)
        except CrossdockError:
            self._clean_up()
            raise

    def refuse_newer(self) -> None:
        """Raises Newer. What cannot be read passes."""
        with suppress(apsw.Error, UnicodeDecodeError):
            completeness.look(self._db, self._folder.path)

    def whole(self) -> None:
        """As the server does it before it starts: the tables are ours, and SQLite finds its pages sound."""
        try:
            if not is_sound(self._db):
                raise NoJournal(f"{self._folder.path / DATABASE} is empty: no server has used it yet")
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(f"the journal cannot be read: {error}; restore a backup") from error

    def refuse_incomplete(self, lake: int = 0) -> Found | None:
        """Raises Damaged if the journal lost its end. The mark is returned. `lake` is the last batch in the lake."""
        return refuse_incomplete(self._folder.path, self._last_readable, lake)

    def _last_readable(self) -> int:
        try:
            return max(self.newest, self._snapshot_seq("snapshot"))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(f"the journal cannot be read: {error}; restore a backup") from error

    @property
    def format(self) -> int:
        return int(self._scalar("select value from meta where key = 'format'") or 0)

    @property
    def newest(self) -> int:
        """As `last`, as of now."""
        return int(self._scalar("select max(seq) from journal") or 0)

    @property
    def previous(self) -> int:
        """The snapshot before the newest. Nothing behind it is ever trimmed."""
        return self._snapshot_seq("previous")

    def tables(self) -> list[str]:
        return [sql for (sql,) in self._db.execute("select sql from sqlite_schema order by rowid")]

    def holds(self) -> list[tuple[str, int]]:
        return [(name, seq) for name, seq in self._db.execute("select name, seq from hold")]

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
