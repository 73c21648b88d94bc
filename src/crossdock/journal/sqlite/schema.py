"""The journal's tables in SQLite: how they are created, checked when they are opened, and copied.

Each pragma is read back after it is set, because setting one can fail silently.
"""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw

from crossdock import __version__
from crossdock.journal.data_dir import DATABASE, snapshot_name
from crossdock.journal.files import NO_ROOM, SYNC_EVERY, sync_uncached
from crossdock.journal.port import JournalFailed
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.model.errors import Damaged, Newer
from crossdock.model.events.codec import entry_checksum, refuse_newer_entry

#: 3.51.3 is the first release without the WAL-reset bug.
LEAST_SQLITE: Final = (3, 51, 3)

FORMAT: Final = 1

#: In `meta`: the newest Crossdock that wrote here, as a number.
WRITER: Final = "crossdock"

PAGE_BYTES: Final = 4_096
LOG_BYTES: Final = 64 * 1024 * 1024

#: A database up to this size is checked completely when it is opened. That takes half a second for a gigabyte.
_CHECKED_BYTES: Final = 2 * 1024 * 1024 * 1024

SCHEMA: Final = (
    "CREATE TABLE journal (seq integer primary key, crc integer not null, entry blob not null)",
    "CREATE TABLE meta (key text primary key, value integer not null) without rowid",
    "CREATE TABLE hold (name text primary key, seq integer not null) without rowid",
)
#: Entries of one transaction of a copy, if they are small.
_COPIED_AT_ONCE: Final = 500

#: What SQLite returns instead of SQLITE_FULL when a quota is used up, or when its shared memory file cannot grow. A
#: failed sync is not among them: after one, the content of the disk is unknown.
_UNWRITTEN: Final = frozenset({apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE})

_PRAGMAS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("journal_mode", "wal", "wal"),
    ("wal_autocheckpoint", "0", 0),
    ("mmap_size", "0", 0),
    ("trusted_schema", "off", 0),
    ("cell_size_check", "on", 1),
    ("journal_size_limit", str(LOG_BYTES), LOG_BYTES),
)


def prepare(db: apsw.Connection, synchronous: str) -> None:
    """Set the pragmas, and create the tables if there are none. `is_sound` has checked existing ones. Raises
    JournalFailed."""
    new = not stored_tables(db)
    level = {"normal": 1, "full": 2}[synchronous]
    for name, value, expected in (*_PRAGMAS, ("synchronous", synchronous, level)):
        db.execute(f"pragma {name}={value}").fetchall()
        found = db.execute(f"pragma {name}").get
        if found != expected:
            raise JournalFailed(f"SQLite has {name} = {found!r} though {expected!r} was set")
    if new:
        with db:
            db.execute(";".join(SCHEMA))
            db.execute("insert into meta values ('format', ?)", (FORMAT,))
    record_version(db)


def record_version(db: apsw.Connection) -> None:
    """Record the version that writes from now on. A version that is too old to read the journal names it."""
    version = _number(__version__)
    known = db.execute("select value from meta where key = ?", (WRITER,)).get
    if not isinstance(known, int) or known < version:
        with suppress(apsw.FullError):  # a full disk must not prevent the start
            db.execute("insert or replace into meta values (?, ?)", (WRITER, version))


def _number(version: str) -> int:
    """1.2.3 as 1002003: the column holds integers."""
    parts = [int(digits[0]) for part in version.split(".")[:3] if (digits := re.match(r"\d+", part))]
    return sum(part * 1_000**power for part, power in zip(parts, (2, 1, 0), strict=False))


def written_by(number: int) -> str:
    """The version of that number if it is newer than this one, else ""."""
    if number <= _number(__version__):
        return ""
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"


def is_sound(db: apsw.Connection) -> bool:
    """Whether there is a journal. False: nothing was written yet. Raises Damaged if its tables are not the expected
    ones, so that a table whose name is damaged is not created again."""
    tables = stored_tables(db)
    pages: int = db.execute("pragma page_count").get
    if not tables and pages <= 1:
        return False
    if tables != list(SCHEMA):
        raise Damaged(f"the journal has the tables {tables}; nothing was changed, restore a backup")
    stored = db.execute("select value from meta where key = 'format'").get
    if stored != FORMAT:
        raise Damaged(f"this journal has format {stored}; this version reads {FORMAT}: use a newer Crossdock")
    if pages * PAGE_BYTES <= _CHECKED_BYTES:
        found = db.execute("pragma quick_check(1)").get
        if found != "ok":
            raise Damaged(f"the journal is damaged: {found}; nothing was changed, restore a backup")
    return True


def stored_tables(db: apsw.Connection) -> list[str]:
    return [sql for (sql,) in db.execute("select sql from sqlite_schema order by rowid")]


def unusable_sqlite() -> str:
    """Why the SQLite of this machine cannot be used. "": it can."""
    version = apsw.sqlite_lib_version()
    if tuple(map(int, version.split("."))) >= LEAST_SQLITE:
        return ""
    return f"SQLite {version} is too old; install apsw {'.'.join(map(str, LEAST_SQLITE))} or newer"


def is_full(error: BaseException, db: apsw.Connection | None = None) -> bool:
    """Whether a write failed because the disk is full. `db` is the connection that failed, if one did.

    SQLite returns SQLITE_FULL only for ENOSPC. EDQUOT is an I/O error whose errno the connection has. Both are rolled
    back in the same way: the transaction does not become part of the log."""
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", 0) in _UNWRITTEN and db is not None and db.system_errno in NO_ROOM
    return isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in NO_ROOM)


def refuse_newer(data_dir: Path) -> None:
    """Raises Newer if a newer Crossdock wrote here. Reads the journal's format, its newest entry and its newest
    snapshot. Each has its version at its beginning, which is read without the rest: this version cannot decode events
    that it does not know. Data that cannot be read passes."""
    database = data_dir / DATABASE
    if not database.is_file() or not database.stat().st_size:
        return
    scratch = [data_dir / f"{DATABASE}-wal", data_dir / f"{DATABASE}-shm"]
    was_clean = not any(file.exists() for file in scratch)
    try:
        db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            refuse_newer_tables(db, data_dir)
        finally:
            db.close()
    except (apsw.Error, UnicodeDecodeError, OSError):
        return
    finally:
        if was_clean:  # SQLite creates both to read a closed journal
            for file in scratch:
                file.unlink(missing_ok=True)


def refuse_newer_tables(db: apsw.Connection, data_dir: Path) -> None:
    """Raises Newer."""
    meta = {key: value for key, value in db.execute("select key, value from meta") if isinstance(value, int)}
    by = written_by(meta.get(WRITER, 0))
    if meta.get("format", 0) > FORMAT:
        raise Newer("the journal's format", meta["format"], FORMAT, by)
    for seq, entry in db.execute("select seq, entry from journal order by seq desc limit 1"):
        if isinstance(entry, bytes):
            refuse_newer_entry(seq, entry, by)
    if meta.get("snapshot"):
        snapshot_file.refuse_newer(data_dir / snapshot_name(meta["snapshot"]), by)


def write_journal(
    into: Path,
    tables: Iterable[str],
    form: int,
    snapshot: int,
    holds: Iterable[tuple[str, int]],
    entries: Iterable[tuple[int, bytes]],
) -> None:
    """Write a new, closed database into a directory. It is written without a log, because a failed copy is thrown away.
    Raises OSError when the disk is full."""
    path = into / DATABASE
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            for pragma in ("journal_mode=off", "synchronous=off", "locking_mode=exclusive"):
                db.execute(f"pragma {pragma}").fetchall()
            for sql in tables:
                db.execute(sql)
            db.execute("insert into meta values ('format', ?)", (form,))
            if snapshot:
                db.execute("insert into meta values ('snapshot', ?)", (snapshot,))
            db.executemany("insert into hold values (?, ?)", holds)
            unsynced = 0
            for some in _slices(entries):
                db.execute("begin")
                db.executemany("insert into journal values (?, ?, ?)", some)
                db.execute("commit")
                unsynced += sum(len(entry) for _, _, entry in some)
                if unsynced >= SYNC_EVERY:
                    os.fdatasync(fd)
                    unsynced = 0
        except apsw.Error as error:
            if not is_full(error, db):
                raise
            number = db.system_errno if db.system_errno in NO_ROOM else errno.ENOSPC
            raise OSError(number, os.strerror(number), str(path)) from error
        finally:
            db.close()
        sync_uncached(fd)
    finally:
        os.close(fd)


def _slices(entries: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, int, bytes]]]:
    some: list[tuple[int, int, bytes]] = []
    size = 0
    for seq, entry in entries:
        some.append((seq, entry_checksum(seq, entry), entry))
        size += len(entry)
        if len(some) >= _COPIED_AT_ONCE or size >= SYNC_EVERY:
            yield some
            some, size = [], 0
    if some:
        yield some
