"""The journal on SQLite: one row a batch, one connection that writes and checkpoints.

WAL and `synchronous=FULL` are set, read back and asserted: an unread pragma can fail in silence. Every row carries a
CRC over its sequence number and its bytes. A failed check raises `Damaged`; nothing here deletes or repairs on one.
"""

import logging
import os
import zlib
from collections.abc import Iterator
from typing import Any, Final

import apsw

from crossdock.journal.folder import DATABASE, Folder, snapshot_name
from crossdock.journal.port import JournalFailed, Snapshot
from crossdock.model.errors import CrossdockError, Damaged

log = logging.getLogger("crossdock.journal")

#: 3.51.3 is the first release without the WAL-reset bug.
LEAST_SQLITE: Final = (3, 51, 3)

_FORMAT: Final = 1
#: Rows a statement reads: more would pin the write-ahead log, or fill the memory.
_ROWS: Final = 250
_ROWS_BYTES: Final = 8 * 1024 * 1024
_PAGE_BYTES: Final = 4_096
_CHECKPOINT_PAGES: Final = 1_000
#: So much that SQLite, which keeps 500 pages in memory, writes more than a checkpoint's.
_ROOM_PAGES: Final = 1_600

#: A database up to this size is checked as a whole when it is opened: half a second for a gigabyte.
_CHECKED_BYTES: Final = 2 * 1024 * 1024 * 1024

_SCHEMA: Final = (
    "CREATE TABLE journal (seq integer primary key, crc integer not null, batch blob not null)",
    "CREATE TABLE meta (key text primary key, value integer not null) without rowid",
    "CREATE TABLE hold (name text primary key, seq integer not null) without rowid",
)
_PRAGMAS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("journal_mode", "wal", "wal"),
    ("wal_autocheckpoint", "0", 0),
    ("mmap_size", "0", 0),
    ("trusted_schema", "off", 0),
    ("cell_size_check", "on", 1),
    ("journal_size_limit", str(64 * 1024 * 1024), 64 * 1024 * 1024),
)


def checksum(seq: int, batch: bytes) -> int:
    return zlib.crc32(batch, seq & 0xFFFFFFFF)


def sound(seq: int, crc: object, batch: object) -> bool:
    return isinstance(batch, bytes) and crc == checksum(seq, batch)


class SqliteJournal:
    """`durability` is "always" (synced before `append` returns) or "everysec" (synced by `sync`, once a second)."""

    def __init__(
        self, folder: Folder, durability: str = "always", *, read_only: bool = False, vfs: str | None = None
    ) -> None:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < LEAST_SQLITE:
            raise JournalFailed(f"SQLite {apsw.sqlite_lib_version()} is too old; install apsw 3.51.3 or newer")
        self._folder = folder
        path = folder.path / DATABASE
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path), flags=flags, vfs=vfs)
        except apsw.Error as error:
            raise Damaged(f"cannot open {path}: {error}; nothing was changed, restore a backup") from error
        try:
            self._db.set_busy_timeout(5_000)
            if read_only:
                self._last = self._scalar("select max(seq) from journal") or 0
                return
            path.chmod(0o600)
            self._prepare("full" if durability == "always" else "normal")
        except (apsw.Error, UnicodeDecodeError) as error:
            self._db.close()
            raise Damaged(f"cannot open {path}: {error}; nothing was changed, restore a backup") from error
        except CrossdockError:
            self._db.close()
            raise
        self.always = durability == "always"
        self._wal = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._wal_pages = 0
        if os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * _PAGE_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        """Give the log its size before the first batch: a sync that makes its file longer takes half as long again.
        What is too much for SQLite's memory goes there, though it is never committed."""
        try:
            self._db.execute("begin")
            self._db.execute("insert into journal values (0, 0, zeroblob(?))", (_ROOM_PAGES * _PAGE_BYTES,))
            self._db.execute("rollback")
            os.fdatasync(self._wal)
        except apsw.FullError as error:  # has rolled back by itself
            log.warning("no room for the log to grow in advance: %s", error)
        except (apsw.Error, OSError) as error:
            raise JournalFailed(f"the log cannot be written: {error}") from error

    def _prepare(self, synchronous: str) -> None:
        is_new = self._is_new()
        level = {"normal": 1, "full": 2}[synchronous]
        for name, value, expected in (*_PRAGMAS, ("synchronous", synchronous, level)):
            self._db.execute(f"pragma {name}={value}").fetchall()
            found = self._scalar(f"pragma {name}")
            if found != expected:
                raise JournalFailed(f"SQLite answers {name} = {found!r} where {expected!r} was set")
        if is_new:
            with self._db:
                self._db.execute(";".join(_SCHEMA))
                self._db.execute("insert into meta values ('format', ?)", (_FORMAT,))
        stored = self._scalar("select value from meta where key = 'format'")
        if stored != _FORMAT:
            raise Damaged(f"this journal has format {stored}; this program reads {_FORMAT}: use a newer Crossdock")
        newest = self._scalar("select max(seq) from journal") or 0
        self._last = max(newest, self._snapshot_seq("snapshot"))

    def _is_new(self) -> bool:
        """Nothing in it yet. What is there must be ours and whole: a table whose name rotted is never made anew."""
        tables = [sql for (sql,) in self._db.execute("select sql from sqlite_schema order by rowid")]
        pages = self._scalar("pragma page_count")
        if not tables and pages <= 1:
            return True
        if tables != list(_SCHEMA):
            raise Damaged(f"the journal has the tables {tables}; nothing was changed, restore a backup")
        if pages * _PAGE_BYTES <= _CHECKED_BYTES:
            found = self._scalar("pragma quick_check(1)")
            if found != "ok":
                raise Damaged(f"the journal is damaged: {found}; nothing was changed, restore a backup")
        return False

    def _scalar(self, sql: str, *values: Any) -> Any:
        return self._db.execute(sql, values).get

    def _snapshot_seq(self, key: str) -> int:
        return int(self._scalar("select value from meta where key = ?", key) or 0)

    @property
    def last(self) -> int:
        return self._last

    @property
    def first(self) -> int:
        """The oldest batch that is there, 0: none is."""
        return int(self._scalar("select min(seq) from journal") or 0)

    def append(self, batch: bytes) -> int:
        # Before the batch, never after it: a full disk must not look like a batch that was not written.
        if self._wal_pages >= _CHECKPOINT_PAGES:
            self._checkpoint()
        seq = self._last + 1
        try:
            self._db.execute("insert into journal values (?, ?, ?)", (seq, checksum(seq, batch), batch))
        except apsw.FullError as error:
            raise DiskFull(f"no room for batch {seq}: {error}") from error
        except apsw.Error as error:
            raise JournalFailed(f"batch {seq} was not written: {error}") from error
        self._last = seq
        # Counted, not asked of SQLite: its hook would take the interpreter's lock once more for each batch.
        self._wal_pages += 2 + len(batch) // _PAGE_BYTES
        return seq

    def _checkpoint(self) -> None:
        """Copy the log into the database as far as readers allow; SQLite itself would hide a failure."""
        try:
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.FullError as error:
            log.error("no room for a checkpoint (%s); the log keeps its pages, the next batch tries again", error)
            return
        except apsw.Error as error:
            raise JournalFailed(f"checkpoint failed: {error}") from error
        self._wal_pages = max(0, in_log - copied)

    def sync(self) -> None:
        """Make everything appended so far durable (`everysec`). The log's own file is all that is not yet."""
        os.fdatasync(self._wal)

    def rows(self, after: int) -> Iterator[tuple[int, int, Any]]:
        """Sequence number, checksum and bytes of what is there behind `after`, unchecked: a few megabytes at a time."""
        while True:
            sizes: list[Any] = self._db.execute(
                "select seq, coalesce(length(batch), 0) from journal where seq > ? order by seq limit ?", (after, _ROWS)
            ).fetchall()
            if not sizes:
                return
            until, left = 0, _ROWS_BYTES
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

    def snapshot(self) -> Snapshot | None:
        seq = self._snapshot_seq("snapshot")
        return Snapshot(seq, self._folder.path / snapshot_name(seq)) if seq else None

    def install(self, snapshot: Snapshot) -> None:
        try:
            with self._db:
                self._db.execute(
                    "insert or replace into meta select 'previous', value from meta where key = 'snapshot'"
                )
                self._db.execute("insert or replace into meta values ('snapshot', ?)", (snapshot.seq,))
        except apsw.FullError as error:
            raise DiskFull(f"no room to install a snapshot: {error}") from error
        kept = {snapshot_name(self._snapshot_seq(key)) for key in ("snapshot", "previous")}
        for path in self._folder.path.glob("snapshot-*"):
            if path.name not in kept:
                path.unlink()

    def hold(self, name: str, seq: int) -> None:
        try:
            self._db.execute("insert or replace into hold values (?, ?)", (name, seq))
        except apsw.FullError as error:
            raise DiskFull(f"no room to note what {name} has read: {error}") from error

    def release(self, name: str) -> None:
        if self._scalar("select 1 from hold where name = ?", name):
            self._db.execute("delete from hold where name = ?", (name,))

    def trim(self, rows: int) -> int:
        held = self._scalar("select min(seq) from hold")
        until = self._snapshot_seq("previous")
        if held is not None:
            until = min(until, int(held))
        try:
            self._db.execute(
                "delete from journal where seq in (select seq from journal where seq <= ? order by seq limit ?)",
                (until, rows),
            )
        except apsw.FullError as error:
            raise DiskFull(f"no room to trim the journal: {error}") from error
        return self._db.changes()

    @property
    def wal_bytes(self) -> int:
        return self._wal_pages * _PAGE_BYTES

    def close(self) -> None:
        if not self._db.readonly("main"):
            os.close(self._wal)
        self._db.close()


class DiskFull(JournalFailed):
    """SQLITE_FULL: nothing was changed; the same may be tried again when there is room."""
