"""Opens the journal of a data directory. The only module outside of `journal/sqlite` that imports the adapter."""

import logging
from pathlib import Path

from crossdock import logs
from crossdock.journal.data_dir import BALLAST, DataDir
from crossdock.journal.port import DiskFull, Journal, JournalReader
from crossdock.journal.sqlite import pages, schema
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.reader import SqliteReader

log = logging.getLogger("crossdock.journal")


def open_journal(data_dir: DataDir, durability: str = "always", lake: int = 0) -> tuple[Journal, bool]:
    """Open the journal for writing. It cannot be opened on a full disk; then the ballast is deleted, and the second
    value is True.

    `lake` is the last entry in the lake. Raises Damaged, DiskFull, JournalFailed.
    """
    try:
        return SqliteJournal(data_dir, durability, lake=lake), False
    except DiskFull as error:
        ballast = data_dir.path / BALLAST
        if not ballast.exists():
            raise
        logs.event(log, logging.ERROR, "reserve-used", f"{error}; using the reserve")
        ballast.unlink()
        return SqliteJournal(data_dir, durability, lake=lake), True


def open_reader(path: Path) -> JournalReader:
    """Open the journal for reading. Raises NoJournal if there is none, Damaged if it cannot be read."""
    return SqliteReader(path)


def create_journal(path: Path, snapshot: int) -> None:
    """Write a journal without entries into a directory. Its state is the snapshot of that number."""
    schema.write_journal(path, schema.SCHEMA, schema.FORMAT, snapshot, (), ())


def readable_entries(path: Path, after: int) -> dict[int, bytes]:
    """Every entry after `after` that passes its checksum, wherever in a damaged journal it is found."""
    return pages.readable_entries(path, after)


def refuse_newer(path: Path) -> None:
    """Raises Newer if a newer Crossdock wrote the journal. The caller holds the lock of the data directory. A journal
    that cannot be read passes: opening it reports what is wrong."""
    schema.refuse_newer(path)


def unusable_store() -> str:
    """Why the SQLite of this machine cannot be used. "": it can."""
    return schema.unusable_sqlite()
