"""The journal's log is preallocated before the first entry, and readers see nothing of that."""

from pathlib import Path

import pytest

from crossdock.journal.data_dir import DATABASE, DataDir
from crossdock.journal.port import JournalFailed
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.reader import SqliteReader

ENOUGH = 1_000 * 4_096


def log_bytes(folder: DataDir) -> int:
    return (folder.path / f"{DATABASE}-wal").stat().st_size


@pytest.fixture
def folder(tmp_path: Path) -> DataDir:
    folder = DataDir(tmp_path / "data")
    folder.lock()
    return folder


def test_a_new_log_is_preallocated_and_empty(folder: DataDir) -> None:
    journal = SqliteJournal(folder)
    assert log_bytes(folder) >= ENOUGH
    assert (journal.last, list(journal.read(0))) == (0, [])
    long = log_bytes(folder)
    for n in range(300):
        journal.append(b"%d" % n * 1_000)
    assert log_bytes(folder) == long
    beside = SqliteReader(folder.path)
    assert [seq for seq, _ in beside.read(0)] == list(range(1, 301))
    beside.close()
    journal.close()


def test_the_log_of_a_crashed_server_is_read_and_not_extended(folder: DataDir) -> None:
    crashed = SqliteJournal(folder)
    crashed.append(b"one")
    long = log_bytes(folder)
    journal = SqliteJournal(folder)
    assert log_bytes(folder) == long
    assert [entry for _, entry in journal.read(0)] == [b"one"]
    journal.close()
    crashed.close()


def test_the_log_is_short_while_the_disk_is_nearly_full(folder: DataDir) -> None:
    journal = SqliteJournal(folder)
    journal.keep_short(True)
    for n in range(300):
        journal.append(b"%d" % n)
    short = log_bytes(folder)
    assert short < 100 * 4_096
    journal.keep_short(False)
    for n in range(300, 600):
        journal.append(b"%d" % n * 100)
    assert log_bytes(folder) > 2 * short, "it may grow again"
    assert len(list(journal.read(0))) == 600
    journal.close()


def test_the_log_is_not_preallocated_with_little_free_space(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("crossdock.journal.sqlite.journal.free_bytes", lambda path: 1024 * 1024)
    journal = SqliteJournal(folder)
    assert log_bytes(folder) < 100 * 4_096
    assert "the log is not preallocated" in caplog.text
    journal.close()


def test_a_start_without_space_to_preallocate_succeeds(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    SqliteJournal(folder).close()
    prepare = SqliteJournal._prepare

    def small(self: SqliteJournal, synchronous: str) -> None:
        prepare(self, synchronous)
        self._db.execute("pragma max_page_count=100").fetchall()

    monkeypatch.setattr(SqliteJournal, "_prepare", small)
    journal = SqliteJournal(folder)
    assert "the log cannot be preallocated" in caplog.text
    journal.append(b"one")
    assert [entry for _, entry in journal.read(0)] == [b"one"]
    assert not journal._db.in_transaction
    journal.close()


def test_a_start_fails_if_the_log_cannot_be_synced(folder: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("crossdock.journal.sqlite.journal.os.fdatasync", fail)
    with pytest.raises(JournalFailed, match="the log cannot be written"):
        SqliteJournal(folder)
