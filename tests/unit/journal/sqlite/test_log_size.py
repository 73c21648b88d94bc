"""The journal's log has its size before the first batch, and nothing of that is ever seen."""

from pathlib import Path

import pytest

from crossdock.journal.data_dir import DATABASE, DataDir
from crossdock.journal.errors import JournalFailed
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


def test_a_new_log_is_as_long_as_it_will_be_and_holds_nothing(folder: DataDir) -> None:
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


def test_after_a_crash_the_log_is_read_and_not_made_longer(folder: DataDir) -> None:
    crashed = SqliteJournal(folder)
    crashed.append(b"one")
    long = log_bytes(folder)
    journal = SqliteJournal(folder)
    assert log_bytes(folder) == long
    assert [batch for _, batch in journal.read(0)] == [b"one"]
    journal.close()
    crashed.close()


def test_while_the_disk_is_nearly_full_it_is_short_and_gives_back_what_it_had(folder: DataDir) -> None:
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


def test_where_there_is_hardly_any_room_it_takes_none_in_advance(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("crossdock.journal.sqlite.journal.free_bytes", lambda path: 1024 * 1024)
    journal = SqliteJournal(folder)
    assert log_bytes(folder) < 100 * 4_096
    assert "hardly any room" in caplog.text
    journal.close()


def test_a_disk_without_room_for_it_is_no_reason_not_to_start(
    folder: DataDir, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    SqliteJournal(folder).close()
    prepare = SqliteJournal._prepare

    def small(self: SqliteJournal, synchronous: str) -> None:
        prepare(self, synchronous)
        self._db.execute("pragma max_page_count=100").fetchall()

    monkeypatch.setattr(SqliteJournal, "_prepare", small)
    journal = SqliteJournal(folder)
    assert "no room" in caplog.text
    journal.append(b"one")
    assert [batch for _, batch in journal.read(0)] == [b"one"]
    assert not journal._db.in_transaction
    journal.close()


def test_a_log_that_cannot_be_synced_is_a_reason_not_to_start(folder: DataDir, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("crossdock.journal.sqlite.journal.os.fdatasync", fail)
    with pytest.raises(JournalFailed, match="the log cannot be written"):
        SqliteJournal(folder)
