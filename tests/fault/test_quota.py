"""An exhausted quota is a full disk: no entry is partly written, and the same entry can be written later."""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw
import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.port import DiskFull, JournalFailed, Snapshot
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.journal.sqlite.schema import is_full
from tests.support import quota_vfs
from tests.support.quota_vfs import Quota, QuotaVFS

pytestmark = pytest.mark.fault


@pytest.fixture
def quota() -> Iterator[Quota]:
    quota = Quota()
    vfs = QuotaVFS(quota)
    yield quota
    vfs.unregister()


def opened(folder: Path) -> SqliteJournal:
    return SqliteJournal(DataDir(folder), vfs=quota_vfs.NAME)


def content(folder: Path) -> list[bytes]:
    """The entries that a server finds at its start."""
    journal = SqliteJournal(DataDir(folder))
    entries = [entry for _, entry in journal.read(0)]
    journal.close()
    return entries


def test_an_entry_beyond_the_quota_is_refused_and_can_be_written_later(tmp_path: Path, quota: Quota) -> None:
    """An exhausted quota is not an I/O error, which would be final."""
    journal = opened(tmp_path)
    written = []
    quota.left = 100_000
    with pytest.raises(DiskFull, match="no space for journal entry"):  # noqa: PT012
        for n in range(100_000):
            journal.append(b"%d" % n * 1_000)
            written.append(b"%d" % n * 1_000)
    assert quota.refused and written
    assert [entry for _, entry in journal.read(0)] == written
    quota.left = None
    assert journal.append(b"after") == len(written) + 1
    journal.close()
    assert content(tmp_path) == [*written, b"after"]


@pytest.mark.parametrize("seed", range(8))
def test_no_entry_is_partly_written_at_any_quota(tmp_path: Path, quota: Quota, seed: int) -> None:
    """The quota ends within a frame, a long entry or a checkpoint. Then the process is killed or tries again."""
    random = Random(seed)
    journal = opened(tmp_path)
    written: list[bytes] = []
    for _ in range(60):
        quota.left = random.randrange(30_000)
        entry = random.randbytes(random.choice((10, 3_000, 9_000, 70_000)))
        try:
            journal.append(entry)
        except DiskFull:
            assert [each for _, each in journal.read(0)] == written
            if random.random() < 0.5:
                continue  # the entry is abandoned
            quota.left = None
            journal.append(entry)
        written.append(entry)
        if random.random() < 0.2:
            quota.left = random.randrange(30_000)
            journal._checkpoint()
    assert quota.refused > 5
    copy = tmp_path / "killed"
    copy.mkdir()
    for path in tmp_path.glob("journal.*"):
        (copy / path.name).write_bytes(path.read_bytes())
    assert content(copy)[: len(written)] == written, "all acknowledged entries must be recovered after a kill"
    quota.left = None
    journal.close()
    assert content(tmp_path) == written


def test_a_full_disk_postpones_maintenance(tmp_path: Path, quota: Quota) -> None:
    journal = opened(tmp_path)
    for n in range(10):
        journal.append(b"%d" % n)
    for seq in (5, 6):
        journal.install(Snapshot(seq, tmp_path / f"snapshot-{seq}"))
    acts = (
        lambda: journal.install(Snapshot(7, tmp_path / "snapshot-7")),
        lambda: journal.hold("lake", 3),
        lambda: journal.trim(5),
    )
    journal._db.execute("pragma wal_checkpoint(truncate)").fetchall()  # otherwise the log has free space
    quota.left = 0
    for act in acts:
        with pytest.raises(DiskFull):
            act()
    quota.left = None
    for act in acts:
        act()
    journal.close()


def test_a_failed_sync_is_final_for_any_error_number(tmp_path: Path, quota: Quota) -> None:
    """A network file system may report the quota only at a sync, and then it is unknown what was written."""
    journal = opened(tmp_path)
    quota.sync_fails = True
    with pytest.raises(JournalFailed) as failed:
        journal.append(b"batch")
    assert not isinstance(failed.value, DiskFull)
    quota.sync_fails = False
    journal.close()


def test_any_other_failed_write_is_final(tmp_path: Path, quota: Quota) -> None:
    journal = opened(tmp_path)
    quota.left, quota.error = 0, errno.EIO
    with pytest.raises(JournalFailed) as failed:  # noqa: PT012
        for _ in range(1_000):
            journal.append(b"x" * 50_000)
    assert not isinstance(failed.value, DiskFull)
    quota.left = None
    journal.close()


def test_which_errors_count_as_a_full_disk() -> None:
    assert (
        is_full(OSError(errno.EDQUOT, "quota")) and is_full(OSError(errno.ENOSPC, "full")) and is_full(apsw.FullError())
    )
    assert not is_full(OSError(errno.EIO, "broken")) and not is_full(apsw.IOError("disk I/O error"))
