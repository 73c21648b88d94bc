"""The scan of the write-ahead log: damage is reported, and a log that a server is writing is not called damaged."""

from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.sqlite import wal
from crossdock.journal.sqlite.journal import SqliteJournal

_FRAME_BYTES = 24 + 4_096


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    """The log of a journal with ten entries, each a transaction of some frames."""
    journal = SqliteJournal(DataDir(tmp_path))
    for n in range(10):
        journal.append(b"%d" % n * 3_000)
    data = (tmp_path / "journal.db-wal").read_bytes()
    journal.close()
    return data


def half_written(log: bytes) -> bytes:
    """The log as a reader sees it that read the third frame while it was written, and the rest afterwards."""
    at = 32 + 2 * _FRAME_BYTES + 2_000
    return log[:at] + bytes(2_000) + log[at + 2_000 :]


def test_a_damaged_frame_before_a_commit_is_reported(tmp_path: Path, log: bytes) -> None:
    path = tmp_path / "copy-wal"
    path.write_bytes(half_written(log))
    assert "fails its checksum" in wal.cut(path)


def test_a_frame_that_was_read_while_it_was_written_is_no_damage(
    tmp_path: Path, log: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "copy-wal"
    path.write_bytes(half_written(log))
    scan, found = wal._scan, []

    def then_written(path: Path) -> str:
        found.append(scan(path))
        path.write_bytes(log)
        return found[-1]

    monkeypatch.setattr(wal, "_scan", then_written)
    assert wal.cut(path) == ""
    assert found[0] and found[1:] == [""]
