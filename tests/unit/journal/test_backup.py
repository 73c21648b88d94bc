"""A backup as a call: what is in a copy, what stops one, and that nothing is left of one that was stopped."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.journal import files
from crossdock.journal.backup import CannotBackUp, Manifest, back_up, read_manifest
from crossdock.journal.data_dir import DATABASE
from crossdock.journal.errors import NoJournal
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


# What is in it


@pytest.mark.parametrize("snapshots", [0, 1, 3])
def test_a_backup_restored_is_the_state_it_was_made_of(tmp_path: Path, snapshots: int) -> None:
    story = at_rest(tmp_path / "data", snapshots=snapshots)
    made = make(tmp_path / "data", tmp_path / "copy")
    assert (made.seq, made.jobs) == (len(story.batches), len(story.state.jobs))
    assert made == read_manifest(tmp_path / "copy") == restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert state(tmp_path / "new") == state(tmp_path / "data")
    assert len(list((tmp_path / "copy").glob("snapshot-*"))) == min(snapshots, 1)
    assert left(tmp_path) == ["copy", "data", "new"]


def test_what_is_written_after_it_began_is_not_in_it(tmp_path: Path, writer: Writer) -> None:
    seq = writer.journal.last

    def write_more(what: str, done: int, of: int) -> None:
        writer.push(f"during-{writer.journal.last:03d}")

    made = back_up(writer.path, tmp_path / "copy", 0, write_more)
    assert made.seq == seq < writer.journal.last


@pytest.mark.parametrize("compactions", [1, 2, 3])
def test_a_server_that_compacts_meanwhile(tmp_path: Path, writer: Writer, compactions: int) -> None:
    """Two compactions delete the snapshot that is being copied and trim the batches behind it."""
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
        assert made.seq == writer.journal.last, "it began anew"
        assert state(tmp_path / "new") == state(writer.path)
    assert made.jobs == len(state(tmp_path / "new")["jobs"])


def test_a_copy_that_is_overtaken_again_and_again_gives_up(tmp_path: Path, writer: Writer) -> None:
    writer.compact()

    def compact(what: str, done: int, of: int) -> None:
        if what == "snapshot":
            for _ in range(2):
                writer.push(f"job-{writer.journal.last:08d}")
                writer.compact()

    with pytest.raises(CannotBackUp, match=r"compacts its journal faster than .* takes a copy; use a faster disk"):
        back_up(writer.path, tmp_path / "copy", 0, compact)
    assert left(tmp_path) == ["data"]


def test_what_a_reader_of_the_journal_still_needs_is_in_it(tmp_path: Path, writer: Writer) -> None:
    writer.journal.hold("lake", 3)
    writer.compact()
    writer.compact()
    make(writer.path, tmp_path / "copy")
    reader = SqliteReader(tmp_path / "copy")
    assert reader.holds() == [("lake", 3)]
    assert [seq for seq, _ in reader.read(3)] == list(range(4, writer.journal.last + 1))
    reader.close()


def test_a_reader_that_was_behind_and_catches_up_meanwhile(tmp_path: Path, writer: Writer) -> None:
    """Then the server trims what the copy wanted for that reader's sake."""
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
    assert writer.journal.first == first + 2, "what it wanted was trimmed"
    assert made.seq == writer.journal.last
    restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert state(tmp_path / "new") == state(writer.path)


def test_a_fault_is_reported_though_a_reader_goes_on_meanwhile(tmp_path: Path, writer: Writer) -> None:
    writer.journal.hold("lake", 3)
    writer.compact()
    change(writer.path, "update journal set entry = x'00' where seq = 10")

    def read_on(what: str, done: int, of: int) -> None:
        writer.journal.hold("lake", 4)

    with pytest.raises(Damaged, match="nothing was backed up: batch 10 fails its checksum"):
        back_up(writer.path, tmp_path / "copy", 0, read_on)
    assert left(tmp_path) == ["data"]


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    make(tmp_path / "data", tmp_path / "copy")
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "copy").iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o700


def test_the_data_folder_is_as_it_was(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=2)
    before = fingerprint(tmp_path / "data")
    make(tmp_path / "data", tmp_path / "copy")
    assert fingerprint(tmp_path / "data") == before


def test_a_copy_can_be_read_without_changing_it(tmp_path: Path) -> None:
    """It may lie on a read-only disk."""
    at_rest(tmp_path / "data")
    make(tmp_path / "data", tmp_path / "copy")
    before = fingerprint(tmp_path / "copy")
    restore(tmp_path / "copy", tmp_path / "new", nothing)
    assert fingerprint(tmp_path / "copy") == before


# What stops a backup


def test_it_never_overwrites(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    for name in ("file", "folder", "link"):
        (tmp_path / "file").touch()
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("nowhere")
        with pytest.raises(CannotBackUp, match=f"{name} exists; name a new one, a backup never overwrites"):
            make(tmp_path / "data", tmp_path / name)


def test_what_another_backup_left_or_is_writing(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    (tmp_path / "copy.partial").mkdir()
    with pytest.raises(CannotBackUp, match=r"copy.partial exists: .* if none runs, remove it"):
        make(tmp_path / "data", tmp_path / "copy")


def test_a_place_that_is_not_there(tmp_path: Path) -> None:
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
            "nothing was backed up: batch 5 fails its checksum; `crossdock check`",
        ),
        ("delete from journal where seq = 5", "nothing was backed up: batches 5 to 5 are missing"),
    ],
)
def test_damaged_data_is_not_backed_up(tmp_path: Path, sql: str, says: str) -> None:
    at_rest(tmp_path / "data")
    change(tmp_path / "data", sql)
    with pytest.raises(Damaged, match=says):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_snapshot_that_is_missing(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    for file in (tmp_path / "data").glob("snapshot-*"):
        file.unlink()
    with pytest.raises(Damaged, match=r"nothing was backed up: .*snapshot-.* is missing"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_copy_that_the_disk_gives_back_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_rest(tmp_path / "data")
    write = schema.write_journal

    def rot(into: Path, *rest: object) -> None:
        write(into, *rest)  # type: ignore[arg-type]
        change(into, "update journal set entry = zeroblob(length(entry)) where seq = 5")

    monkeypatch.setattr(schema, "write_journal", rot)
    with pytest.raises(Damaged, match="batch 5 fails its checksum"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_a_disk_that_fills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_rest(tmp_path / "data", snapshots=1)

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "settle", full)
    with pytest.raises(CannotBackUp, match=r"no room for the backup in .*; free some space, or .* was removed"):
        make(tmp_path / "data", tmp_path / "copy")
    assert left(tmp_path) == ["data"]


def test_the_servers_own_disk_is_not_filled_up(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=1)
    with pytest.raises(CannotBackUp, match="the server would refuse new jobs; back up to another disk"):
        make(tmp_path / "data", tmp_path / "copy", keep_free=1 << 60)
    assert left(tmp_path) == ["data"]


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")

    def interrupt(what: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(tmp_path / "data", tmp_path / "copy", 0, interrupt)
    assert left(tmp_path) == ["data"]
