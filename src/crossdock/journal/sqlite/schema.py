"""The journal's tables in SQLite: made once, and looked at whenever they are opened.

WAL and `synchronous=FULL` are set, read back and asserted: an unread pragma can fail in silence.
"""

import re
from contextlib import suppress
from typing import Any, Final

import apsw

from crossdock import __version__
from crossdock.journal.port import JournalFailed
from crossdock.model.errors import Damaged

FORMAT: Final = 1

#: In `meta`: the newest Crossdock that wrote here, as a number.
WRITER: Final = "crossdock"

PAGE_BYTES: Final = 4_096
LOG_BYTES: Final = 64 * 1024 * 1024

#: A database up to this size is checked as a whole when it is opened: half a second for a gigabyte.
_CHECKED_BYTES: Final = 2 * 1024 * 1024 * 1024

SCHEMA: Final = (
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
    ("journal_size_limit", str(LOG_BYTES), LOG_BYTES),
)


def prepare(db: apsw.Connection, synchronous: str) -> None:
    """Make them, if there are none; `is_sound` has looked at those that are there. Raises JournalFailed."""
    new = not _stored(db)
    level = {"normal": 1, "full": 2}[synchronous]
    for name, value, expected in (*_PRAGMAS, ("synchronous", synchronous, level)):
        db.execute(f"pragma {name}={value}").fetchall()
        found = db.execute(f"pragma {name}").get
        if found != expected:
            raise JournalFailed(f"SQLite answers {name} = {found!r} where {expected!r} was set")
    if new:
        with db:
            db.execute(";".join(SCHEMA))
            db.execute("insert into meta values ('format', ?)", (FORMAT,))
    sign(db)


def sign(db: apsw.Connection) -> None:
    """Note the version that writes from now on: one that is too old to read this names it."""
    version = _number(__version__)
    known = db.execute("select value from meta where key = ?", (WRITER,)).get
    if not isinstance(known, int) or known < version:
        with suppress(apsw.FullError):  # no start may fail for it
            db.execute("insert or replace into meta values (?, ?)", (WRITER, version))


def _number(version: str) -> int:
    """1.2.3 as 1002003: the table holds numbers."""
    parts = [int(digits[0]) for part in version.split(".")[:3] if (digits := re.match(r"\d+", part))]
    return sum(part * 1_000**sort_key for part, sort_key in zip(parts, (2, 1, 0), strict=False))


def written_by(number: int) -> str:
    """The version of that number, if it is newer than this one; else "": it is not what makes the difference."""
    if number <= _number(__version__):
        return ""
    return f"{number // 1_000_000}.{number // 1_000 % 1_000}.{number % 1_000}"


def is_sound(db: apsw.Connection) -> bool:
    """Whether there is a journal: False if nothing was written yet. What is there must be ours and whole: a table whose
    name rotted is never made again. Raises Damaged."""
    tables = _stored(db)
    pages: int = db.execute("pragma page_count").get
    if not tables and pages <= 1:
        return False
    if tables != list(SCHEMA):
        raise Damaged(f"the journal has the tables {tables}; nothing was changed, restore a backup")
    stored = db.execute("select value from meta where key = 'format'").get
    if stored != FORMAT:
        raise Damaged(f"this journal has format {stored}; this program reads {FORMAT}: use a newer Crossdock")
    if pages * PAGE_BYTES <= _CHECKED_BYTES:
        found = db.execute("pragma quick_check(1)").get
        if found != "ok":
            raise Damaged(f"the journal is damaged: {found}; nothing was changed, restore a backup")
    return True


def _stored(db: apsw.Connection) -> list[str]:
    return [sql for (sql,) in db.execute("select sql from sqlite_schema order by rowid")]
