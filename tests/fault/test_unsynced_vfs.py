"""Simulated power cuts: entries for which `append` has returned survive any loss of unsynced writes.

Replaces test_power_cut.py where no file system can be mounted. It runs everywhere within seconds.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from crossdock.journal.completeness import MARK
from crossdock.journal.data_dir import DataDir, snapshot_name
from crossdock.journal.port import Snapshot
from crossdock.journal.sqlite import journal as sqlite_journal
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support.forgetful_vfs import NAME, Disk, ForgetfulVFS

pytestmark = pytest.mark.fault

CUTS = 100


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    vfs = ForgetfulVFS(disk)
    yield disk
    vfs.unregister()


def recovered(folder: Path) -> list[bytes]:
    journal = SqliteJournal(DataDir(folder))
    after = (journal.snapshot() or Snapshot(1, folder)).seq - 1
    try:
        return [entry for _, entry in journal.read(after)]
    finally:
        journal.close()


def cut_off(disk: Disk, image: Path, data: Path, random: Random) -> None:
    """The mark survives unchanged. This is the strictest case: after a real cut it may be older."""
    disk.cut(image, random)
    shutil.copyfile(data / MARK, image / MARK)


def losses(tmp_path: Path, disk: Disk, durability: str, cuts: int, *, until_lost: bool = False) -> int:
    """Append, cut, recover. Returns the number of acknowledged entries that are missing; asserts everything else."""
    random = Random(6)
    data = tmp_path / "data"
    journal = SqliteJournal(DataDir(data), durability, vfs=NAME)
    known: list[bytes] = []
    lost = 0
    for cut in range(cuts):
        for _ in range(random.randrange(1, 30)):
            known.append(random.randbytes(random.choice((10, 200, 200, 5_000, 20_000))))
            journal.append(known[-1])
        image = tmp_path / f"cut-{cut}"
        image.mkdir()
        cut_off(disk, image, data, random)
        found = recovered(image)
        assert found == known[: len(found)], "entries must be unchanged, without a gap"
        lost += len(known) - len(found)
        if lost and until_lost:
            break
        for each in image.iterdir():
            each.unlink()
    journal.close()
    return lost


def test_nothing_acknowledged_is_lost(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "_CHECKPOINT_PAGES", 150)
    assert losses(tmp_path, disk, "always", CUTS) == 0
    assert disk.syncs > CUTS


def test_a_journal_that_does_not_sync_would_be_noticed(tmp_path: Path, disk: Disk) -> None:
    assert losses(tmp_path, disk, "everysec", CUTS, until_lost=True) > 0


def test_the_sync_of_everysec_keeps_earlier_entries(tmp_path: Path, disk: Disk) -> None:
    """The synced log is enough to recover all entries before the sync.

    `sync` bypasses SQLite and syncs the log's file, so the test reports the sync to the simulated disk.
    """
    journal = SqliteJournal(DataDir(tmp_path / "data"), "everysec", vfs=NAME)
    for n in range(20):
        journal.append(b"%d" % n)
    journal.sync()
    disk.sync(str(tmp_path / "data" / "journal.db-wal"))
    for n in range(20, 40):
        journal.append(b"%d" % n)
    image = tmp_path / "cut"
    image.mkdir()
    disk.pending = {path: [] for path in disk.pending}
    cut_off(disk, image, tmp_path / "data", Random(1))
    found = recovered(image)
    journal.close()
    assert found[:20] == [b"%d" % n for n in range(20)]
    assert len(found) == 20


def test_an_installed_snapshot_stays_installed(tmp_path: Path, disk: Disk) -> None:
    random = Random(2)
    data = tmp_path / "data"
    journal = SqliteJournal(DataDir(data), vfs=NAME)
    for round_ in range(1, 20):
        for _ in range(20):
            journal.append(random.randbytes(300))
        path = data / snapshot_name(round_ * 20)
        path.write_bytes(b"state")
        journal.install(Snapshot(round_ * 20, path))
        journal.trim(100)
        image = tmp_path / f"cut-{round_}"
        image.mkdir()
        cut_off(disk, image, data, random)
        after_cut = SqliteJournal(DataDir(image))
        assert after_cut.snapshot() == Snapshot(round_ * 20, image / path.name)
        assert after_cut.last == round_ * 20
        assert list(after_cut.read(round_ * 20)) == []
        after_cut.close()
    journal.close()
