"""A quota that is used up is a full disk: nothing is half written, and the same batch may be tried again."""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw
import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.errors import DiskFull, JournalFailed
from crossdock.journal.port import Snapshot
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
    """As a server finds it that starts there."""
    journal = SqliteJournal(DataDir(folder))
    batches = [batch for _, batch in journal.read(0)]
    journal.close()
    return batches


def test_a_used_up_quota_stops_the_server(tmp_path: Path, quota: Quota) -> None:
    """It did: an I/O error is final. Now the batch is refused, and written when there is room."""
    journal = opened(tmp_path)
    written = []
    quota.left = 100_000
    with pytest.raises(DiskFull, match="no room for batch"):  # noqa: PT012
        for n in range(100_000):
            journal.append(b"%d" % n * 1_000)
            written.append(b"%d" % n * 1_000)
    assert quota.refused and written
    assert [batch for _, batch in journal.read(0)] == written
    quota.left = None
    assert journal.append(b"after") == len(written) + 1
    journal.close()
    assert content(tmp_path) == [*written, b"after"]


@pytest.mark.parametrize("seed", range(8))
def test_wherever_the_quota_ends_nothing_is_half_written(tmp_path: Path, quota: Quota, seed: int) -> None:
    """In the middle of a frame, of a batch of many pages, or of a checkpoint; then killed, or tried again."""
    random = Random(seed)
    journal = opened(tmp_path)
    written: list[bytes] = []
    for _ in range(60):
        quota.left = random.randrange(30_000)
        batch = random.randbytes(random.choice((10, 3_000, 9_000, 70_000)))
        try:
            journal.append(batch)
        except DiskFull:
            assert [each for _, each in journal.read(0)] == written
            if random.random() < 0.5:
                continue  # it is given up
            quota.left = None
            journal.append(batch)
        written.append(batch)
        if random.random() < 0.2:
            quota.left = random.randrange(30_000)
            journal._checkpoint()
    assert quota.refused > 5
    copy = tmp_path / "killed"
    copy.mkdir()
    for path in tmp_path.glob("journal.*"):
        (copy / path.name).write_bytes(path.read_bytes())
    assert content(copy)[: len(written)] == written, "all that was answered is there after a kill"
    quota.left = None
    journal.close()
    assert content(tmp_path) == written


def test_housekeeping_is_put_off(tmp_path: Path, quota: Quota) -> None:
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
    journal._db.execute("pragma wal_checkpoint(truncate)").fetchall()  # or there is room in the log
    quota.left = 0
    for act in acts:
        with pytest.raises(DiskFull):
            act()
    quota.left = None
    for act in acts:
        act()
    journal.close()


def test_a_failed_sync_is_final_whatever_its_number(tmp_path: Path, quota: Quota) -> None:
    """A network file system may speak of the quota only then, and nobody knows what it has written."""
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


def test_what_counts_as_full() -> None:
    assert (
        is_full(OSError(errno.EDQUOT, "quota")) and is_full(OSError(errno.ENOSPC, "full")) and is_full(apsw.FullError())
    )
    assert not is_full(OSError(errno.EIO, "broken")) and not is_full(apsw.IOError("disk I/O error"))
