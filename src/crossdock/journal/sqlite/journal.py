"""The journal on SQLite: one row per entry, one connection that writes and checkpoints.

Every row carries a CRC over its sequence number and its bytes, and the durable mark says which row is the last. A
failed check raises `Damaged`; nothing here deletes or repairs after one.
"""

import logging
import os
from functools import partial
from typing import Final

import apsw

from crossdock.journal.completeness import RESTORED, UNSYNCED, DurableMark, lost_journal, refuse_incomplete
from crossdock.journal.data_dir import DATABASE, DataDir, snapshot_name
from crossdock.journal.errors import DiskFull, JournalFailed
from crossdock.journal.files import free_bytes
from crossdock.journal.port import Snapshot
from crossdock.journal.sqlite import schema, wal
from crossdock.journal.sqlite.reader import JournalTables, cannot_open, last_readable
from crossdock.journal.sqlite.schema import LOG_BYTES, PAGE_BYTES, is_full
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.events.codec import entry_checksum

log = logging.getLogger("crossdock.journal")

_CHECKPOINT_PAGES: Final = 1_000
#: So much that SQLite, which keeps 500 pages in memory, writes more than a checkpoint's.
_ROOM_PAGES: Final = 1_600
#: While the disk is nearly full the log is no longer than this: an entry takes two pages of it, and in the database,
#: once it is copied there, little more than its own bytes.
_SHORT_PAGES: Final = 64

_INSERT: Final = "insert into journal values (?, ?, ?)"


class SqliteJournal(JournalTables):
    """`durability` is "always" (synced before `append` returns) or "everysec" (synced by `sync`, once a second).

    `lake` is the last entry that the lake holds: a journal that ends before it is incomplete.
    """

    def __init__(self, data_dir: DataDir, durability: str = "always", *, lake: int = 0, vfs: str | None = None) -> None:
        if unusable := schema.unusable_sqlite():
            raise JournalFailed(unusable)
        self._path = data_dir.path
        path = self._path / DATABASE
        if lost := lost_journal(self._path):
            raise Damaged(f"{lost}; nothing was changed")
        log_damage = partial(wal.cut, self._path / f"{DATABASE}-wal")
        mark = refuse_incomplete(self._path, partial(last_readable, path), log_damage, lake)
        if mark is not None and mark.fault:
            log.warning("%s; it is written again", mark.fault)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path), flags=flags, vfs=vfs)
        except apsw.Error as error:
            raise cannot_open(path, error) from error
        try:
            self._db.set_busy_timeout(5_000)
            path.chmod(0o600)
            self._prepare("full" if durability == "always" else "normal")
        except (apsw.Error, UnicodeDecodeError) as error:
            self._db.close()
            raise cannot_open(path, error) from error
        except CrossdockError:
            self._db.close()
            raise
        self._always = durability == "always"
        self._wal = os.open(f"{path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        self._wal_pages = 0
        self._checkpoint_at = _CHECKPOINT_PAGES
        self._no_room_told = False
        self._closed = False
        fresh = False
        if free_bytes(self._path) > 4 * _ROOM_PAGES * PAGE_BYTES:
            fresh = self._restart_log()
            if os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
                self._make_room()
        elif os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
            # the database needs the little there is as well
            log.warning("hardly any room on the disk: the log grows batch by batch")
        flags = (mark.flags if mark is not None else 0) & RESTORED
        try:
            self._mark = DurableMark(self._path, self._last, flags if fresh and self._always else flags | UNSYNCED)
        except OSError as error:
            self._db.close()
            os.close(self._wal)
            raise cannot_open(path, error) from error

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
        """Give the log its size before the first entry: a sync that makes its file longer takes half as long again.
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

    def append(self, entry: bytes) -> int:
        # Before the entry, never after it: a full disk must not look like an entry that was not written.
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint()
        seq = self._last + 1
        try:
            try:
                self._db.execute(_INSERT, (seq, entry_checksum(seq, entry), entry))
            except apsw.Error as error:
                if not is_full(error, self._db):
                    raise
                # The log cannot grow. Copied into the database it begins anew, in the room that it has.
                self._checkpoint()
                self._db.execute(_INSERT, (seq, entry_checksum(seq, entry), entry))
        except apsw.Error as error:
            if is_full(error, self._db):
                raise DiskFull(f"no room for batch {seq}: {error}") from error
            raise JournalFailed(f"batch {seq} was not written: {error}") from error
        self._last = seq
        if self._always:
            self._move_mark(seq)
        # Counted, not asked of SQLite: its hook would take the interpreter's lock once more for each entry.
        self._wal_pages += 2 + len(entry) // PAGE_BYTES
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
        for path in self._path.glob("snapshot-*"):
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

    def trim(self, most: int) -> int:
        try:
            self._db.execute(
                "delete from journal where seq in (select seq from journal where seq <= ? order by seq limit ?)",
                (self.trimmable, most),
            )
        except apsw.Error as error:
            raise self._not_done(error, "trim the journal") from error
        return self._db.changes()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.sync()
        self._mark.close()
        os.close(self._wal)
        self._db.close()
