"""Backups: their content, what prevents one, and that a failed one leaves nothing."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.journal import files
from crossdock.journal.backup import CannotBackUp, Manifest, back_up, read_manifest
from crossdock.journal.data_dir import DATABASE
from crossdock.journal.port import NoJournal
from crossdock.journal.restore import restore
from crossdock.journal.sqlite import schema
from crossdock.journal.sqlite.reader import SqliteReader
from crossdock.model.errors import Damaged
from tests.support.journals import Writer, at_rest, change, fingerprint, state
from tests.support.states import eventful


def nothing(what: str, done: int, of: int) -> None:
    pass


def make(data: Path, dest: Path, keep_free: int = 0) -> Manifest:
    return back_up(data, dest, keep_free, nothing)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    yield writer
    writer.close()


def left(tmp_path: Path) -> list[str]:
    return sorted(each.name for each in tmp_path.iterdir())


# Content


@pytest.mark.parametrize("snapshots", [0, 1, 3])
def test_a_restored_backup_has_the_original_state(tmp_path: Path, snapshots: int) -> None:
    story = at_rest(tmp_path / "data", snapshots=snapshots)
    made = make(tmp_path / "data", tmp_path / "copy")
    assert (made.seq, made.jobs) == (len(story.batches), len(story.state.jobs))
    assert made == read_manifest(tmp_path / "copy") == restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert state(tmp_path / "new") == state(tmp_path / "data")
    assert len(list((tmp_path / "copy").glob("snapshot-*"))) == min(snapshots, 1)
    assert left(tmp_path) == ["copy", "data", "new"]


def test_entries_written_after_the_start_are_not_in_the_backup(tmp_path: Path, writer: Writer) -> None:
    seq = writer.journal.last

    def write_more(what: str, done: int, of: int) -> None:
        writer.push(f"during-{writer.journal.last:03d}")

    made = back_up(writer.path, tmp_path / "copy", 0, write_more)
    assert made.seq == seq < writer.journal.last


@pytest.mark.parametrize("compactions", [1, 2, 3])
def test_a_server_that_compacts_meanwhile(tmp_path: Path, writer: Writer, compactions: int) -> None:
    """Two compactions delete the snapshot that is being copied and trim the entries after it."""
    for n in range(2):
        writer.compact()
        writer.push(*(f"job-{n}-{k:04d}" for k in range(50)))
    left_to_do = compactions

    def compact(what: str, done: int, of: int) -> None:
        nonlocal left_to_do
        if left_to_do and what == "snapshot":
            while left_to_do:
                writer.push(f"meanwhile-{left_to_do}")
                writer.compact()
                left_to_do -= 1

    made = back_up(writer.path, tmp_path / "copy", 0, compact)
    assert left_to_do == 0
    restore(tmp_path / "copy", tmp_path / "new", nothing)
    if compactions > 1:
        assert made.seq == writer.journal.last, "it started again"
        assert state(tmp_path / "new") == state(writer.path)
    assert made.jobs == len(state(tmp_path / "new")["jobs"])


def test_a_copy_that_is_always_overtaken_gives_up(tmp_path: Path, writer: Writer) -> None:
    writer.compact()

    def compact(what: str, done: int, of: int) -> None:
        if what == "snapshot":
            for _ in range(2):
                writer.push(f"job-{writer.journal.last:08d}")
                writer.compact()

    with pytest.raises(CannotBackUp, match=r"compacts its journal faster than .* can be written; use a faster disk"):
        back_up(writer.path, tmp_path / "copy", 0, compact)
    assert left(tmp_path) == ["data"]


def test_entries_that_a_reader_still_needs_are_in_the_backup(tmp_path: Path, writer: Writer) -> None:
    writer.journal.hold("lake", 3)
    writer.compact()
    writer.compact()
    make(writer.path, tmp_path / "copy")
    reader = SqliteReader(tmp_path / "copy")
    assert reader.holds() == [("lake", 3)]
    assert [seq for seq, _ in reader.read(3)] == list(range(4, writer.journal.last + 1))
    reader.close()


def test_a_reader_that_catches_up_during_the_copy_restarts_it(tmp_path: Path, writer: Writer) -> None:
    """Then the server trims entries that the copy needed for that reader."""
    writer.journal.hold("lake", 3)
    first = writer.compact()
    for n in range(2):
        writer.push(f"behind-{n}")
        writer.compact()

    def catch_up(what: str, done: int, of: int) -> None:
        if what == "snapshot":
            writer.journal.hold("lake", writer.journal.last)
            writer.journal.trim(1_000)

    assert writer.journal.first == 4
    made = back_up(writer.path, tmp_path / "copy", 0, catch_up)
    assert writer.journal.first == first + 2, "entries that it needed were trimmed"
    assert made.seq == writer.journal.last
    restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert state(tmp_path / "new") == state(writer.path)


def test_a_fault_is_reported_though_a_reader_catches_up(tmp_path: Path, writer: Writer) -> None:
    writer.journal.hold("lake", 3)
    writer.compact()
    change(writer.path, "update journal set entry = x'00' where seq = 10")

    def read_on(what: str, done: int, of: int) -> None:
        writer.journal.hold("lake", 4)

    with pytest.raises(Damaged, match="nothing was backed up: journal entry 10 fails its checksum"):
        back_up(writer.path, tmp_path / "copy", 0, read_on)
    assert left(tmp_path) == ["data"]


def test_only_the_owner_may_read_a_backup(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    make(tmp_path / "data", tmp_path / "copy")
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "copy").iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700


def test_a_backup_does_not_change_the_data_folder(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=2)
    before = fingerprint(tmp_path / "data")
    make(tmp_path / "data", tmp_path / "copy")
    assert fingerprint(tmp_path / "data") == before


def test_a_copy_can_be_read_without_changing_it(tmp_path: Path) -> None:
    """It may be on a read-only disk."""
    at_rest(tmp_path / "data")
    make(tmp_path / "data", tmp_path / "copy")
    before = fingerprint(tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert fingerprint(tmp_path / "copy") == before


# Failures


def test_an_existing_destination_is_refused(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    for name in ("file", "folder", "link"):
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("nowhere")
        with pytest.raises(CannotBackUp, match=f"{name} exists; choose a new name, a backup never overwrites"):
            make(tmp_path / "data", tmp_path / name)


def test_a_partial_copy_of_another_backup_is_refused(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    (tmp_path / "copy.partial").mkdir()
    with pytest.raises(CannotBackUp, match=r"copy.partial exists: .* if none runs, remove it"):
        make(tmp_path / "data", tmp_path / "copy")


def test_a_missing_parent_folder_is_refused(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    with pytest.raises(CannotBackUp, match="nowhere is not a folder; create it"):
        make(tmp_path / "data", tmp_path / "nowhere" / "copy")


@pytest.mark.parametrize("content", [None, b""])
def test_a_folder_without_a_journal(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "data").mkdir()
    if content is not None:
        (tmp_path / "data" / DATABASE).write_bytes(content)
    with pytest.raises(NoJournal, match="data holds no journal"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "update journal set crc = crc + 1 where seq = 5",
            "nothing was backed up: journal entry 5 fails its checksum; `crossdock check`",
        ),
        ("delete from journal where seq = 5", "nothing was backed up: entries 5 to 5 are missing"),
    ],
)
def test_damaged_data_is_not_backed_up(tmp_path: Path, sql: str, says: str) -> None:
    at_rest(tmp_path / "data")
    change(tmp_path / "data", sql)
    with pytest.raises(Damaged, match=says):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_missing_snapshot_is_reported(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    for file in (tmp_path / "data").glob("snapshot-*"):
        file.unlink()
    with pytest.raises(Damaged, match=r"nothing was backed up: .*snapshot-.* is missing"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_copy_that_reads_back_changed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_rest(tmp_path / "data")
    write = schema.write_journal

    def rot(into: Path, *rest: object) -> None:
        write(into, *rest)  # type: ignore[arg-type]
        change(into, "update journal set entry = zeroblob(length(entry)) where seq = 5")

    monkeypatch.setattr(schema, "write_journal", rot)
    with pytest.raises(Damaged, match="entry 5 fails its checksum"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_backup_to_a_full_disk_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_rest(tmp_path / "data", snapshots=1)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "sync_uncached", full)
    with pytest.raises(CannotBackUp, match=r"no space for the backup in .*; free some space, or .* was removed"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_backup_stops_before_the_servers_disk_is_full(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    with pytest.raises(CannotBackUp, match="the server would refuse new jobs; back up to another disk"):
        make(tmp_path / "data", tmp_path / "copy", keep_free=1 << 60)
    assert left(tmp_path) == ["data"]


def test_an_interrupted_backup_leaves_nothing(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")

    def interrupt(what: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(tmp_path / "data", tmp_path / "copy", 0, interrupt)
    assert left(tmp_path) == ["data"]
