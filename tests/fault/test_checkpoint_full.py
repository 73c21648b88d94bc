"""A checkpoint without disk space: the entry is written exactly once, and the next append repeats the checkpoint."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.port import JournalFailed
from crossdock.journal.sqlite import journal as sqlite_journal
from crossdock.journal.sqlite.journal import SqliteJournal

pytestmark = pytest.mark.fault


class NoCheckpoint:
    """A connection whose checkpoints fail; all other calls go to the real one."""

    def __init__(self, db: apsw.Connection, error: apsw.Error | None) -> None:
        self._db = db
        self.error = error
        self.tried = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def wal_checkpoint(self, **options: Any) -> tuple[int, int]:
        self.tried += 1
        if self.error is not None:
            raise self.error
        return self._db.wal_checkpoint(**options)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteJournal:
    monkeypatch.setattr(sqlite_journal, "_CHECKPOINT_PAGES", 20)
    return SqliteJournal(DataDir(tmp_path))


def broken(journal: SqliteJournal, error: apsw.Error) -> NoCheckpoint:
    proxy = NoCheckpoint(journal._db, error)
    vars(journal)["_db"] = proxy
    return proxy


def test_every_entry_is_written_once(journal: SqliteJournal) -> None:
    proxy = broken(journal, apsw.FullError("database or disk is full"))
    entries = [b"%d" % n for n in range(100)]
    assert [journal.append(entry) for entry in entries] == list(range(1, 101))
    assert proxy.tried > 10
    assert [entry for _, entry in journal.read(0)] == entries
    proxy.error = None
    tried = proxy.tried
    for n in range(100, 105):
        journal.append(b"%d" % n)
    assert proxy.tried == tried + 1, "one checkpoint is enough when there is space again"
    assert len(list(journal.read(0))) == 105
    journal.close()


def test_any_other_failed_checkpoint_stops_the_journal(journal: SqliteJournal) -> None:
    broken(journal, apsw.IOError("disk I/O error"))
    written = 0
    with pytest.raises(JournalFailed, match="checkpoint failed"):  # noqa: PT012
        for _ in range(100):
            written = journal.append(b"batch")
    assert [seq for seq, _ in journal.read(0)] == list(range(1, written + 1))
    journal.close()
