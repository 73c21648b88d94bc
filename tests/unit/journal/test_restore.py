"""Restoring a backup: what is refused, and that a failed restore leaves nothing."""

import errno
import os
from pathlib import Path

import pytest

from crossdock.journal import files
from crossdock.journal.backup import MANIFEST, back_up
from crossdock.journal.completeness import write_mark
from crossdock.journal.data_dir import DATABASE
from crossdock.journal.restore import CannotRestore, restore
from crossdock.model.errors import Damaged
from tests.support.journals import Writer, at_rest, change, fingerprint, flip, state


def nothing(what: str, done: int, of: int) -> None:
    pass


def left(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in tmp_path.iterdir())


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    at_rest(tmp_path / "data", snapshots=1)
    back_up(tmp_path / "data", tmp_path / "copy", 0, nothing)
    return tmp_path / "copy"


def refused(copy: Path, data: Path, says: str) -> None:
    there = fingerprint(data) if data.is_dir() else {}
    before = left(copy.parent)
    with pytest.raises((CannotRestore, Damaged), match=says):
        restore(copy, data, nothing)
    assert left(copy.parent) == before
    assert not data.is_dir() or fingerprint(data) == there


def test_a_folder_in_use(copy: Path) -> None:
    writer = Writer(copy.parent / "live")
    refused(copy, copy.parent / "live", f"in use by process {os.getpid()}; stop that server .* another folder")
    writer.close()


def test_a_folder_that_is_not_empty_is_refused(copy: Path) -> None:
    refused(copy, copy.parent / "data", r"not empty \(journal.db, journal.mark, snapshot-\d+\); move it away")
    (copy.parent / "home").mkdir()
    (copy.parent / "home" / "letter").touch()
    refused(copy, copy.parent / "home", r"home is not empty \(letter\); move it away, or restore to another")


def test_a_file_in_place_of_the_folder_is_refused(copy: Path) -> None:
    (copy.parent / "file").touch()
    refused(copy, copy.parent / "file", "file is not a folder")


def test_a_folder_that_is_not_a_backup_is_refused(copy: Path) -> None:
    refused(copy.parent / "data", copy.parent / "new", "data is not a backup: it has no backup.json")
    (copy / MANIFEST).write_text("{}")
    refused(copy, copy.parent / "new", "backup.json cannot be read: .*; use another backup")
    (copy / MANIFEST).write_text('{"format":9,"crossdock":"9.0","made":"","seq":1,"events":1,"jobs":1,"bytes":1}')
    refused(copy, copy.parent / "new", r"made by a newer Crossdock \(9.0\)")


def test_a_damaged_backup_is_refused(copy: Path) -> None:
    (file,) = copy.glob("snapshot-*")
    flip(file, -30)
    done: list[str] = []
    with pytest.raises(Damaged, match=r"snapshot .*; restore a backup"):
        restore(copy, copy.parent / "new", lambda what, *_: done.append(what))
    assert set(done) == {"verify"}, "the backup is verified before anything is copied"
    assert not (copy.parent / "new").exists()


def test_a_backup_that_lost_its_end_is_refused(copy: Path) -> None:
    change(copy, "delete from journal where seq = (select max(seq) from journal)")
    refused(copy, copy.parent / "new", r"entry \d+ is missing from the end of the journal")
    write_mark(copy, 0, 0)
    refused(copy, copy.parent / "new", r"jobs up to journal entry \d+, its backup.json states \d+ up to \d+; use")


def test_an_empty_folder_is_accepted_and_an_interrupted_restore_is_removed(copy: Path) -> None:
    data = copy.parent / "new"
    (data / "restoring").mkdir(parents=True)
    (data / "restoring" / DATABASE).write_text("half")
    (data / "lock").touch()
    restore(copy, data, nothing)
    assert state(data) == state(copy.parent / "data")
    assert not (data / "restoring").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_restore_to_a_full_disk_is_removed(copy: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    data = copy.parent / "new"
    if there:
        data.mkdir()

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "sync_uncached", full)
    with pytest.raises(CannotRestore, match=r"no space in .* MiB: .* the backup is unchanged"):
        restore(copy, data, nothing)
    assert ([each.name for each in data.iterdir()] == ["lock"]) if there else not data.exists()
