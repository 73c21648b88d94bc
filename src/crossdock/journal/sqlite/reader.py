"""Reads the journal's tables, for the writer and for other processes.

`SqliteReader` opens the journal of a data directory read-only and reads in short statements, whether its server runs or
not. Backup, check, compaction and the lake use it.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw

from crossdock.journal import completeness
from crossdock.journal.completeness import FoundMark
from crossdock.journal.data_dir import DATABASE, LOCK, snapshot_name
from crossdock.journal.files import has_room
from crossdock.journal.port import DiskFull, JournalFailed, NoJournal, Snapshot, StoredEntry
from crossdock.journal.sqlite import schema, wal
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.events.codec import entry_checksum

#: Entries, and their bytes, that one statement reads. More would pin the write-ahead log or fill the memory.
_ENTRIES: Final = 250
_ENTRIES_BYTES: Final = 8 * 1024 * 1024


def is_intact(seq: int, crc: object, entry: object) -> bool:
    return isinstance(entry, bytes) and crc == entry_checksum(seq, entry)


class JournalTables:
    """The tables of an open database. Subclasses open and close it."""

    _db: apsw.Connection
    _path: Path  #: of the data directory
    _last: int

    def _scalar(self, sql: str, *values: Any) -> Any:
        return self._db.execute(sql, values).get

    def _snapshot_seq(self, key: str) -> int:
        return int(self._scalar("select value from meta where key = ?", key) or 0)

    @property
    def last(self) -> int:
        return self._last

    @property
    def first(self) -> int:
        return int(self._scalar("select min(seq) from journal") or 0)

    def size_behind(self, seq: int) -> int:
        return int(self._scalar("select coalesce(sum(length(entry)), 0) from journal where seq > ?", seq))

    @property
    def trimmable(self) -> int:
        """The last entry that may be trimmed: two snapshots hold it, and no reader needs it."""
        held = self._scalar("select min(seq) from hold")
        # Never past the newest snapshot, even if the record of the previous one is damaged.
        spare = min(self._snapshot_seq("previous"), self._snapshot_seq("snapshot"))
        return spare if held is None else min(spare, int(held))

    @property
    def previous(self) -> int:
        return self._snapshot_seq("previous")

    def snapshot(self) -> Snapshot | None:
        seq = self._snapshot_seq("snapshot")
        return Snapshot(seq, self._path / snapshot_name(seq)) if seq else None

    def read(self, after: int) -> Iterator[tuple[int, bytes]]:
        try:
            for seq, crc, entry in self._unchecked(after):
                if seq != after + 1:
                    raise Damaged(f"entries {after + 1} to {seq - 1} are missing from the journal; restore a backup")
                if not is_intact(seq, crc, entry):
                    raise Damaged(f"journal entry {seq} fails its checksum; restore a backup")
                yield seq, entry
                after = seq
        except (apsw.Error, UnicodeDecodeError) as error:
            raise Damaged(f"journal entry {after + 1} cannot be read: {error}; restore a backup") from error

    def _unchecked(self, after: int) -> Iterator[tuple[int, int, Any]]:
        """Sequence number, checksum and bytes of each entry after `after`, a few megabytes at a time."""
        while True:
            sizes: list[Any] = self._db.execute(
                "select seq, coalesce(length(entry), 0) from journal where seq > ? order by seq limit ?",
                (after, _ENTRIES),
            ).fetchall()
            if not sizes:
                return
            until, left = 0, _ENTRIES_BYTES
            for seq, size in sizes:
                if until and size > left:
                    break
                until, left = seq, left - size
            entries: list[Any] = self._db.execute(
                "select seq, crc, entry from journal where seq > ? and seq <= ? order by seq", (after, until)
            ).fetchall()
            yield from entries
            after = until


class SqliteReader(JournalTables):
    """Read-only. Everything raises Damaged where SQLite cannot read."""

    def __init__(self, path: Path) -> None:
        """Raises NoJournal, Damaged, DiskFull."""
        database = path / DATABASE
        if not database.is_file() or not database.stat().st_size:
            only = ", only a lock file: a server there starts empty" if (path / LOCK).exists() else ""
            raise NoJournal(f"{path} holds no journal ({DATABASE}){only}; name the folder of a server's data")
        if not os.access(database, os.R_OK):
            raise NoJournal(f"{database} cannot be read by this user; try again as the user that the server runs as")
        self._path = path
        self._scratch = [path / f"{DATABASE}-wal", path / f"{DATABASE}-shm"]
        self._was_clean = not any(file.exists() for file in self._scratch)
        try:
            self._open(database)
        except CrossdockError:
            self._clean_up()
            raise

    def _open(self, database: Path) -> None:
        if unusable := schema.unusable_sqlite():
            raise JournalFailed(unusable)
        try:
            self._db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        except apsw.Error as error:
            raise cannot_open(database, error) from error
        try:
            self._db.set_busy_timeout(5_000)
            self._last = self._db.execute("select max(seq) from journal").get or 0
        except (apsw.Error, UnicodeDecodeError) as error:
            self._db.close()
            raise cannot_open(database, error) from error

    def _scalar(self, sql: str, *values: Any) -> Any:
        try:
            return super()._scalar(sql, *values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise _cannot_read(error) from error

    @property
    def newest(self) -> int:
        return int(self._scalar("select max(seq) from journal") or 0)

    def holds(self) -> list[tuple[str, int]]:
        try:
            return [(name, seq) for name, seq in self._db.execute("select name, seq from hold")]
        except (apsw.Error, UnicodeDecodeError) as error:
            raise _cannot_read(error) from error

    def stored(self, after: int) -> Iterator[StoredEntry]:
        try:
            for seq, crc, entry in self._unchecked(after):
                size = len(entry) if isinstance(entry, bytes) else 0
                yield StoredEntry(seq, size, is_intact(seq, crc, entry))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise _cannot_read(error) from error

    def sync(self) -> None:
        """Sync the log. SQLite syncs it before a checkpoint, so entries that may not be durable are only in the log."""
        try:
            fd = os.open(self._scratch[0], os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def refuse_newer(self) -> None:
        with suppress(apsw.Error, UnicodeDecodeError):
            schema.refuse_newer_tables(self._db, self._path)

    def refuse_incomplete(self, lake: int = 0) -> FoundMark | None:
        return completeness.refuse_incomplete(
            self._path,
            lambda: max(self.newest, self._snapshot_seq("snapshot")),
            lambda: wal.cut(self._scratch[0]),
            lake,
        )

    def check_structure(self) -> None:
        try:
            if not schema.is_sound(self._db):
                raise NoJournal(f"{self._path / DATABASE} is empty: no server has used it yet")
        except (apsw.Error, UnicodeDecodeError) as error:
            raise _cannot_read(error) from error

    def write_copy(
        self, into: Path, entries: Iterable[tuple[int, bytes]], snapshot: int, holds: Sequence[tuple[str, int]]
    ) -> None:
        form = int(self._scalar("select value from meta where key = 'format'") or 0)
        schema.write_journal(into, schema.stored_tables(self._db), form, snapshot, holds, entries)

    def close(self) -> None:
        self._db.close()
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove the two files that SQLite creates to read a closed journal, unless a server runs."""
        if not self._was_clean:
            return
        try:
            lock = os.open(self._path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._scratch[0].exists() or self._scratch[0].stat().st_size == 0:
                for file in self._scratch:
                    file.unlink(missing_ok=True)
        except OSError:
            pass  # in use, or on a read-only disk; the files do no harm
        finally:
            os.close(lock)


def last_readable(path: Path) -> int:
    """The last entry that a start finds in the database at `path`. The caller holds its lock. Raises Damaged."""
    if not path.exists():
        return 0
    made = [each for suffix in ("-wal", "-shm") if not (each := path.with_name(path.name + suffix)).exists()]
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if not schema.is_sound(db):
                return 0
            snapshot = db.execute("select value from meta where key = 'snapshot'").get
            return max(db.execute("select max(seq) from journal").get or 0, snapshot or 0)
        finally:
            db.close()
    except (apsw.Error, UnicodeDecodeError) as error:
        raise cannot_open(path, error) from error
    finally:
        for each in made:
            each.unlink(missing_ok=True)


def cannot_open(path: Path, error: Exception) -> CrossdockError:
    """The error to raise. On a full disk SQLite reports an I/O error, or a file that it cannot open."""
    if schema.is_full(error) or not has_room(path.parent):
        return DiskFull(f"no space is left on the disk of {path}; free some space there and try again")
    return Damaged(f"cannot open {path}: {error}; nothing was changed, restore a backup")


def _cannot_read(error: Exception) -> Damaged:
    return Damaged(f"the journal cannot be read: {error}; restore a backup")
