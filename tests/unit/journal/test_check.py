"""`crossdock check`: the faults that it finds, and that it changes nothing."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crossdock.cli.main import main
from crossdock.journal.backup import back_up
from crossdock.journal.check import BROKEN, NEWER, SOUND, SPARE, Report, check
from crossdock.journal.completeness import MARK, write_mark
from crossdock.journal.data_dir import DATABASE
from crossdock.journal.port import NoJournal
from crossdock.journal.snapshot import file as snapshot_file
from crossdock.journal.sqlite import reader
from tests.support.journals import Writer, at_rest, change, fingerprint, flip
from tests.support.states import eventful


def nothing(what: str, done: int, of: int) -> None:
    pass


def look(data: Path) -> Report:
    return check(data, nothing)


@pytest.mark.parametrize("snapshots", [0, 1, 3])
def test_a_sound_folder_has_no_faults(tmp_path: Path, snapshots: int) -> None:
    story = at_rest(tmp_path / "data", snapshots=snapshots)
    before = fingerprint(tmp_path / "data")
    report = look(tmp_path / "data")
    assert (report.faults, report.cure, report.server) == ([], SOUND, "")
    assert (report.last, report.jobs) == (len(story.batches), len(story.state.jobs))
    assert report.jobs == sum(report.states.values())
    assert len(report.snapshots) == min(snapshots, 2)
    assert fingerprint(tmp_path / "data") == before


def test_a_folder_in_use(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    assert look(tmp_path / "data").server
    assert look(tmp_path / "data").faults == []
    assert {each.name for each in (tmp_path / "data").glob("journal*")} == {
        DATABASE,
        MARK,
        f"{DATABASE}-wal",
        f"{DATABASE}-shm",
    }, "the server's own files are not removed"
    writer.push("goes-on-0")
    writer.close()


def test_the_folder_of_a_killed_server_is_sound(tmp_path: Path) -> None:
    """Entries that are only in the write-ahead log are checked, and stay there."""
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    copy = tmp_path / "after"
    copy.mkdir()
    for file in (tmp_path / "data").iterdir():
        if not file.name.endswith("-shm"):
            (copy / file.name).write_bytes(file.read_bytes())
    writer.close()
    before = fingerprint(copy)
    report = look(copy)
    assert (report.faults, report.last) == ([], len(writer.story.batches))
    after = fingerprint(copy)
    after.pop(f"{DATABASE}-shm", None)
    assert after == before


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    writer = Writer(tmp_path / "data")
    writer.tell(eventful())
    writer.compact()
    writer.push("before-1")
    yield writer
    writer.close()


def compact_often(writer: Writer, times: int = 3) -> None:
    for n in range(times):
        writer.push(f"meanwhile-{n}")
        writer.compact()


@pytest.mark.parametrize(("at", "times"), [("journal", 1), ("journal", 3), ("snapshot", 3), ("fold", 3)])
def test_a_server_that_compacts_meanwhile(writer: Writer, monkeypatch: pytest.MonkeyPatch, at: str, times: int) -> None:
    """Between two pages of the journal, before the older snapshot is read, before the newer one is."""
    monkeypatch.setattr(reader, "_ENTRIES", 2)
    for n in range(12):
        writer.push(f"behind-{n:02d}")
        if n == 6:
            writer.compact()
    busy = True

    def compact(what: str, done: int, of: int) -> None:
        nonlocal busy
        if busy and what == at:
            busy = False
            compact_often(writer, times)

    assert check(writer.path, compact).faults == []
    assert not busy


def test_a_snapshot_that_the_server_deletes_during_the_check_is_no_fault(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, paths = snapshot_file.load, []

    def late(path: Path) -> snapshot_file.Loaded:
        paths.append(path)
        if len(paths) == 1:
            compact_often(writer)
        return load(path)

    monkeypatch.setattr(snapshot_file, "load", late)
    assert look(writer.path).faults == []
    assert len(set(paths)) > 1
    assert not paths[0].exists()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    at_rest(tmp_path / "data", snapshots=3)
    return tmp_path / "data"


def newest(data: Path) -> Path:
    return max(data.glob("snapshot-*"))


def oldest(data: Path) -> Path:
    return min(data.glob("snapshot-*"))


def sql(text: str) -> Callable[[Path], None]:
    return lambda data: change(data, text)


LAST = "(select max(seq) from journal)"
NEWEST = "(select value from meta where key = 'snapshot')"


@pytest.mark.parametrize(
    ("harm", "says", "cure"),
    [
        (sql(f"update journal set crc = crc + 1 where seq = {LAST}"), r"entry \d+ fails its checksum", BROKEN),
        (sql(f"update journal set entry = 'text' where seq = {LAST}"), r"entry \d+ fails its checksum", BROKEN),
        (sql(f"delete from journal where seq = {LAST} - 1"), r"entries \d+ to \d+ are missing", BROKEN),
        (sql(f"delete from journal where seq < {LAST}"), r"missing between the snapshot and the journal", BROKEN),
        (sql(f"update journal set crc = 0 where seq = {NEWEST}"), r"entry \d+ fails its checksum", SPARE),
        (lambda data: flip(newest(data), -40), "snapshot .* fails its checksum", BROKEN),
        (lambda data: newest(data).unlink(), "snapshot .* cannot be read", BROKEN),
        (lambda data: flip(oldest(data), -40), "snapshot .* fails its checksum", SPARE),
        (lambda data: oldest(data).unlink(), "snapshot .* cannot be read", SPARE),
        (sql("alter table meta rename to beta"), "the journal has the tables|no such table", BROKEN),
        (sql("update meta set value = 7 where key = 'format'"), "format 7.*newer Crossdock", NEWER),
    ],
)
def test_each_fault_is_reported_with_its_cure(data: Path, harm: Callable[[Path], None], says: str, cure: str) -> None:
    harm(data)
    before = fingerprint(data)
    report = look(data)
    assert report.cure == cure
    assert any(re.search(says, fault) for fault in report.faults), report.faults
    assert fingerprint(data) == before


def test_damaged_pages_are_reported(data: Path) -> None:
    file = data / DATABASE
    size = file.stat().st_size
    for at in range(4_096, size, 4_096):
        flip(file, at)
    before = fingerprint(data)
    assert look(data).cure == BROKEN
    assert fingerprint(data) == before


def test_a_thousand_faults_are_summarized_in_ten_lines(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    change(tmp_path / "data", "update journal set crc = 0")
    report = look(tmp_path / "data")
    assert len(report.faults) == 11
    assert "the rest of the journal was not checked" in report.faults[-1]


def test_a_backup_is_checked_against_its_manifest(data: Path) -> None:
    copy = data.parent / "copy"
    back_up(data, copy, 0, nothing)
    assert look(copy).faults == []
    change(copy, f"delete from journal where seq = {LAST}")
    assert "is missing from the end" in look(copy).faults[0]
    write_mark(copy, 0, 0)
    assert "its backup.json states" in look(copy).faults[0]


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nothing holds no journal"):
        look(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_the_result(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--data", str(data)]) == 0
    assert "sound: no faults found" in capsys.readouterr().out
    flip(newest(data), -40)
    assert main(["check", "--data", str(data)]) == 1
    out = capsys.readouterr().out
    assert "fault: snapshot" in out
    assert f"what to do: {BROKEN}" in out
    assert main(["check", "--data", str(data), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["sound"] is False
    assert told["cure"] == BROKEN
    assert main(["check", "--data", str(data / "none")]) == 1
    assert "none holds no journal" in capsys.readouterr().err
