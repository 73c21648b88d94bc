"""The journal on SQLite: one row a batch, one connection that writes and checkpoints.

Every row carries a CRC over its sequence number and its bytes, and the durable mark says which row is the last. A
failed check raises `Damaged`; nothing here deletes or repairs on one.
"""

import logging
import os
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw

from crossdock.journal.completeness import refuse_incomplete
from crossdock.journal.data_dir import DATABASE, Folder, snapshot_name, widowed
from crossdock.journal.durable_mark import RESTORED, UNSYNCED, Mark
from crossdock.journal.files import NO_ROOM, free_bytes, has_room
from crossdock.journal.port import JournalFailed, Snapshot
from crossdock.journal.sqlite import schema
from crossdock.journal.sqlite.schema import LOG_BYTES, PAGE_BYTES
from crossdock.model.errors import CrossdockError, Damaged

log = logging.getLogger("crossdock.journal")

#: 3.51.3 is the first release without the WAL-reset bug.
LEAST_SQLITE: Final = (3, 51, 3)

#: Rows a statement reads: more would pin the write-ahead log, or fill the memory.
_ROWS: Final = 250
_ROWS_BYTES: Final = 8 * 1024 * 1024
_CHECKPOINT_PAGES: Final = 1_000
#: So much that SQLite, which keeps 500 pages in memory, writes more than a checkpoint's.
_ROOM_PAGES: Final = 1_600
#: While the disk is nearly full the log is no longer than this: a batch takes two pages of it, and in the database,
#: once it is copied there, little more than its own bytes.
_SHORT_PAGES: Final = 64

#: What SQLite answers instead of SQLITE_FULL when a quota is used up, or when its shared memory file cannot grow. A
#: failed sync is not among them: after one nobody knows what is on the disk.
_UNWRITTEN: Final = frozenset({apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE})

_INSERT: Final = "insert into journal values (?, ?, ?)"


def checksum(seq: int, batch: bytes) -> int:
    return zlib.crc32(batch, seq & 0xFFFFFFFF)


def sound(seq: int, crc: object, batch: object) -> bool:
    return isinstance(batch, bytes) and crc == checksum(seq, batch)


class SqliteJournal:
    """`durability` is "always" (synced before `append` returns) or "everysec" (synced by `sync`, once a second).

    `lake` is the last batch that the lake holds: a journal that ends before it is incomplete.
    """

    def __init__(
        self,
        folder: Folder,
        durability: str = "always",
        *,
        lake: int = 0,
        read_only: bool = False,
        vfs: str | None = None,
    ) -> None:
        if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")) < LEAST_SQLITE:
            raise JournalFailed(f"SQLite {apsw.sqlite_lib_version()} is too old; install apsw 3.51.3 or newer")
        self._folder = folder
        path = folder.path / DATABASE
        mark = None
        if not read_only:
            if gone := widowed(folder.path):
                raise Damaged(f"{gone}; nothing was changed")
            mark = refuse_incomplete(folder.path, partial(_last_readable, path), lake)
            if mark is not None and mark.fault:
                log.warning("%s; it is written again", mark.fault)
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path), flags=flags, vfs=vfs)
        except apsw.Error as error:
            raise _cannot_open(path, error) from error
        try:
            self._db.set_busy_timeout(5_000)
            if read_only:
                self._last = self._scalar("select max(seq) from journal") or 0
                return
            path.chmod(0o600)
            self._prepare("full" if durability == "always" else "normal")
        except (apsw.Error, UnicodeDecodeError) as error:
            self._db.close()
            raise _cannot_open(path, error) from error
        except CrossdockError:
            self._db.close()
            raise
        self._always = durability == "always"
        self._wal = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._wal_pages = 0
        self._checkpoint_at = _CHECKPOINT_PAGES
        self._no_room_told = False
        fresh = False
        if free_bytes(folder.path) > 4 * _ROOM_PAGES * PAGE_BYTES:
            fresh = self._restart_log()
            if os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
                self._make_room()
        elif os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
            # the database needs the little there is as well
            log.warning("hardly any room on the disk: the log grows batch by batch")
        flags = (mark.flags if mark is not None else 0) & RESTORED
        try:
            self._mark = Mark(folder.path, self._last, flags if fresh and self._always else flags | UNSYNCED)
        except OSError as error:
            self._db.close()
            os.close(self._wal)
            raise _cannot_open(path, error) from error

    def _restart_log(self) -> bool:
        """Begin a log with new salts: frames that a crash left behind the end of the old one never look like damage of
        this one. False: it was not possible now, the log goes on where it ended."""
        try:
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.Error as error:
            if isinstance(error, apsw.BusyError) or is_full(error, self._db):
                log.warning("the log was not restarted: %s", error)
                return False
            raise JournalFailed(f"checkpoint failed: {error}") from error
        return in_log == copied

    def _make_room(self) -> None:
        """Give the log its size before the first batch: a sync that makes its file longer takes half as long again.
        What is too much for SQLite's memory goes there, though it is never committed."""
        try:
            self._db.execute("begin")
            self._db.execute("insert into journal values (0, 0, zeroblob(?))", (_ROOM_PAGES * PAGE_BYTES,))
            self._db.execute("rollback")
            os.fdatasync(self._wal)
        except (apsw.Error, OSError) as error:
            if not is_full(error, self._db):  # if it is, SQLite has rolled back by itself
                raise JournalFailed(f"the log cannot be written: {error}") from error
            log.warning("no room for the log to grow in advance: %s", error)

    def _prepare(self, synchronous: str) -> None:
        schema.prepare(self._db, synchronous)
        newest = self._scalar("select max(seq) from journal") or 0
        self._last = max(newest, self._snapshot_seq("snapshot"))

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

    def size_behind(self, seq: int) -> int:
        """Bytes of all batches behind that one."""
        return int(self._scalar("select coalesce(sum(length(batch)), 0) from journal where seq > ?", seq))

    @property
    def needless(self) -> int:
        """The last batch that may be trimmed: two snapshots hold it, and no reader wants it."""
        held = self._scalar("select min(seq) from hold")
        # Not past the newest, whatever the record of the one before it says: a flipped bit must not cost batches.
        spare = min(self._snapshot_seq("previous"), self._snapshot_seq("snapshot"))
        return spare if held is None else min(spare, int(held))

    def append(self, batch: bytes) -> int:
        # Before the batch, never after it: a full disk must not look like a batch that was not written.
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint()
        seq = self._last + 1
        try:
            try:
                self._db.execute(_INSERT, (seq, checksum(seq, batch), batch))
            except apsw.Error as error:
                if not is_full(error, self._db):
                    raise
                # The log cannot grow. Copied into the database it begins anew, in the room that it has.
                self._checkpoint()
                self._db.execute(_INSERT, (seq, checksum(seq, batch), batch))
        except apsw.Error as error:
            if is_full(error, self._db):
                raise DiskFull(f"no room for batch {seq}: {error}") from error
            raise JournalFailed(f"batch {seq} was not written: {error}") from error
        self._last = seq
        if self._always:
            self._move_mark(seq)
        # Counted, not asked of SQLite: its hook would take the interpreter's lock once more for each batch.
        self._wal_pages += 2 + len(batch) // PAGE_BYTES
        return seq

    def _checkpoint(self) -> None:
        """Copy the log into the database as far as readers allow; SQLite itself would hide a failure."""
        try:
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            if not is_full(error, self._db):
                raise JournalFailed(f"checkpoint failed: {error}") from error
            if not self._no_room_told:
                self._no_room_told = True
                log.error("no room for a checkpoint (%s); the log keeps its pages, each batch tries again", error)
            return
        self._wal_pages = max(0, in_log - copied)
        self._no_room_told = False

    def keep_short(self, short: bool) -> None:
        """Whether the disk is nearly full. The log gives back what it has more when it next begins anew."""
        at = _SHORT_PAGES if short else _CHECKPOINT_PAGES
        if at != self._checkpoint_at:
            self._checkpoint_at = at
            self._db.execute(f"pragma journal_size_limit={at * PAGE_BYTES if short else LOG_BYTES}").fetchall()

    def _move_mark(self, seq: int) -> None:
        try:
            self._mark.move(seq)
        except OSError as error:
            raise JournalFailed(f"the mark of batch {seq} was not written: {error}") from error

    def sync(self) -> None:
        """Make everything appended so far durable: the log under `everysec`, and the mark."""
        if not self._always:
            last = self._last
            os.fdatasync(self._wal)
            self._mark.move(last)
        self._mark.sync()

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
        except apsw.Error as error:
            raise self._not_done(error, "install a snapshot") from error
        kept = {snapshot_name(self._snapshot_seq(key)) for key in ("snapshot", "previous")}
        for path in self._folder.path.glob("snapshot-*"):
            if path.name not in kept:
                path.unlink()

    def hold(self, name: str, seq: int) -> None:
        try:
            self._db.execute("insert or replace into hold values (?, ?)", (name, seq))
        except apsw.Error as error:
            raise self._not_done(error, f"note what {name} has read") from error

    def release(self, name: str) -> None:
        if self._scalar("select 1 from hold where name = ?", name):
            try:
                self._db.execute("delete from hold where name = ?", (name,))
            except apsw.Error as error:
                raise self._not_done(error, f"note that {name} reads no more") from error

    def _not_done(self, error: apsw.Error, what: str) -> JournalFailed:
        if is_full(error, self._db):
            return DiskFull(f"no room to {what}: {error}")
        return JournalFailed(f"cannot {what}: {error}")

    def trim(self, rows: int) -> int:
        try:
            self._db.execute(
                "delete from journal where seq in (select seq from journal where seq <= ? order by seq limit ?)",
                (self.needless, rows),
            )
        except apsw.Error as error:
            raise self._not_done(error, "trim the journal") from error
        return self._db.changes()

    def close(self) -> None:
        if self._db.readonly("main"):
            self._db.close()
            return
        self.sync()
        self._mark.close()
        os.close(self._wal)
        self._db.close()


def _last_readable(path: Path) -> int:
    """The last batch that a start would find, in a folder that is locked and left as it is. Raises Damaged."""
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
        raise _cannot_open(path, error) from error
    finally:
        for each in made:
            each.unlink(missing_ok=True)


class DiskFull(JournalFailed):
    """No room on the disk or in the quota: nothing was changed; the same may be tried again when there is room."""


def is_full(error: BaseException, db: apsw.Connection | None = None) -> bool:
    """Whether a write failed for want of room. `db` is the connection that failed, if one did.

    SQLite answers SQLITE_FULL for ENOSPC alone; for EDQUOT it is an I/O error, and the connection knows the number. It
    rolls both back in the same way: what was written of the transaction stays outside the log."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _UNWRITTEN and db is not None and db.system_errno in NO_ROOM
    return isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in NO_ROOM)


def _cannot_open(path: Path, error: Exception) -> CrossdockError:
    """Without room for its log SQLite speaks of an I/O error, or of a file that it cannot open."""
    if is_full(error) or not has_room(path.parent):
        return DiskFull(f"no room is left on the disk of {path}; free some space there and try again")
    return Damaged(f"cannot open {path}: {error}; nothing was changed, restore a backup")
