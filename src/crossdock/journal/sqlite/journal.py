"""The journal in SQLite: one row per entry, and one connection that writes and checkpoints.

Every entry has a CRC over its sequence number and its bytes, and the durable mark has the number of the last entry. A
failed check raises `Damaged`. Damaged data is never deleted or repaired here.
"""

import logging
import os
from functools import partial
from typing import Final

import apsw

from crossdock import logs
from crossdock.journal.completeness import RESTORED, UNSYNCED, DurableMark, lost_journal, refuse_incomplete
from crossdock.journal.data_dir import DATABASE, DataDir, snapshot_name
from crossdock.journal.files import free_bytes
from crossdock.journal.port import DiskFull, JournalFailed, Snapshot
from crossdock.journal.sqlite import schema, wal
from crossdock.journal.sqlite.reader import JournalTables, cannot_open, last_readable
from crossdock.journal.sqlite.schema import LOG_BYTES, PAGE_BYTES, is_full
from crossdock.model.errors import CrossdockError, Damaged
from crossdock.model.events.codec import entry_checksum

log = logging.getLogger("crossdock.journal")

_CHECKPOINT_PAGES: Final = 1_000
#: Pages written to preallocate the log. SQLite keeps 500 pages in memory and writes the others, which is more than
#: `_CHECKPOINT_PAGES`.
_ROOM_PAGES: Final = 1_600
#: Longest log while the disk is nearly full. An entry takes two pages of the log, but little more than its own bytes in
#: the database.
_SHORT_PAGES: Final = 64

_BUSY_MS: Final = 5_000

#: A journal with more pages in use is not rewritten: no client is served meanwhile. 64 MiB take about half a second.
_SCRUBBED_PAGES: Final = 16_384
#: Milliseconds to wait for a reader. Readers use short statements.
_SCRUB_WAIT_MS: Final = 200

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
            logs.event(log, logging.WARNING, "mark-damaged", f"{mark.fault}; writing it again")
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path), flags=flags, vfs=vfs)
        except apsw.Error as error:
            raise cannot_open(path, error) from error
        try:
            self._db.set_busy_timeout(_BUSY_MS)
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
        self._no_room_logged = False
        self._closed = False
        fresh = False
        if free_bytes(self._path) > 4 * _ROOM_PAGES * PAGE_BYTES:
            fresh = self._restart_log()
            if os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
                self._make_room()
        elif os.fstat(self._wal).st_size < _CHECKPOINT_PAGES * PAGE_BYTES:
            # the database needs the remaining space as well
            text = "the disk has little free space; the log is not preallocated"
            logs.event(log, logging.WARNING, "disk-low", text)
        flags = (mark.flags if mark is not None else 0) & RESTORED
        try:
            self._mark = DurableMark(self._path, self._last, flags if fresh and self._always else flags | UNSYNCED)
        except OSError as error:
            self._db.close()
            os.close(self._wal)
            raise cannot_open(path, error) from error

    def _restart_log(self) -> bool:
        """Start a log with new salts, so that frames which a crash left after the end of the old log do not look like
        damage of this one. False: it was not possible now, and the log continues where it ended."""
        try:
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        except apsw.Error as error:
            if isinstance(error, apsw.BusyError) or is_full(error, self._db):
                logs.event(log, logging.WARNING, "journal-busy", f"the log was not restarted: {error}")
                return False
            raise JournalFailed(f"checkpoint failed: {error}") from error
        return in_log == copied

    def _make_room(self) -> None:
        """Preallocate the log before the first entry: a sync of a growing file takes half as long again. SQLite writes
        pages that do not fit into its memory to the log, even if they are never committed."""
        try:
            self._db.execute("begin")
            self._db.execute("insert into journal values (0, 0, zeroblob(?))", (_ROOM_PAGES * PAGE_BYTES,))
            self._db.execute("rollback")
            os.fdatasync(self._wal)
        except (apsw.Error, OSError) as error:
            if not is_full(error, self._db):  # if it is, SQLite has rolled back
                raise JournalFailed(f"the log cannot be written: {error}") from error
            logs.event(log, logging.WARNING, "disk-low", f"the log cannot be preallocated: {error}")

    def _prepare(self, synchronous: str) -> None:
        schema.prepare(self._db, synchronous)
        newest = self._scalar("select max(seq) from journal") or 0
        self._last = max(newest, self._snapshot_seq("snapshot"))

    def append(self, entry: bytes) -> int:
        # Before the entry, never after it: a checkpoint that meets a full disk must not look like a failed entry.
        if self._wal_pages >= self._checkpoint_at:
            self._checkpoint()
        seq = self._last + 1
        try:
            try:
                self._db.execute(_INSERT, (seq, entry_checksum(seq, entry), entry))
            except apsw.Error as error:
                if not is_full(error, self._db):
                    raise
                # The log cannot grow. After a checkpoint it starts again in the space that it has.
                self._checkpoint()
                self._db.execute(_INSERT, (seq, entry_checksum(seq, entry), entry))
        except apsw.Error as error:
            if is_full(error, self._db):
                raise DiskFull(f"no space for journal entry {seq}: {error}") from error
            raise JournalFailed(f"journal entry {seq} was not written: {error}") from error
        self._last = seq
        if self._always:
            self._move_mark(seq)
        # Counted here: SQLite's hook would take the interpreter lock once more for each entry.
        self._wal_pages += 2 + len(entry) // PAGE_BYTES
        return seq

    def _checkpoint(self) -> None:
        """Copy the log into the database as far as readers allow. An automatic checkpoint of SQLite would hide a
        failure."""
        try:
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error as error:
            if not is_full(error, self._db):
                raise JournalFailed(f"checkpoint failed: {error}") from error
            if not self._no_room_logged:
                self._no_room_logged = True
                text = f"no space for a checkpoint ({error}); it is tried again with each entry"
                logs.event(log, logging.ERROR, "disk-full", text)
            return
        self._wal_pages = max(0, in_log - copied)
        self._no_room_logged = False

    def keep_short(self, short: bool) -> None:
        """Whether the disk is nearly full. A log that is too long is truncated when it next starts again."""
        at = _SHORT_PAGES if short else _CHECKPOINT_PAGES
        if at != self._checkpoint_at:
            self._checkpoint_at = at
            self._db.execute(f"pragma journal_size_limit={at * PAGE_BYTES if short else LOG_BYTES}").fetchall()

    def _move_mark(self, seq: int) -> None:
        try:
            self._mark.move(seq)
        except OSError as error:
            raise JournalFailed(f"the mark of journal entry {seq} was not written: {error}") from error

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
            raise self._not_done(error, f"record what {name} has read") from error

    def release(self, name: str) -> None:
        if self._scalar("select 1 from hold where name = ?", name):
            try:
                self._db.execute("delete from hold where name = ?", (name,))
            except apsw.Error as error:
                raise self._not_done(error, f"record that {name} reads no more") from error

    def _not_done(self, error: apsw.Error, what: str) -> JournalFailed:
        if is_full(error, self._db):
            return DiskFull(f"no space to {what}: {error}")
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

    def scrub(self) -> bool:
        """SQLite leaves deleted rows in free pages, and old frames in the log. So the database is written again, which
        takes as long as its remaining entries, and the log is truncated."""
        used = self._scalar("pragma page_count") - self._scalar("pragma freelist_count")
        if used > _SCRUBBED_PAGES or free_bytes(self._path) < 4 * (used + _ROOM_PAGES) * PAGE_BYTES:
            return False
        self._db.set_busy_timeout(_SCRUB_WAIT_MS)
        try:
            self._db.execute("pragma temp_store=memory").fetchall()  # a copy in /tmp would have the same bytes
            self._db.execute("vacuum")
            in_log, copied = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            if isinstance(error, apsw.BusyError) or is_full(error, self._db):
                return False
            raise JournalFailed(f"the journal cannot be rewritten: {error}") from error
        finally:
            self._db.set_busy_timeout(_BUSY_MS)
        self._wal_pages = 0
        self._make_room()
        return bool(in_log == copied)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.sync()
        self._mark.close()
        os.close(self._wal)
        self._db.close()
