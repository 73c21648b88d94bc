"""`crossdock salvage` copies all readable data, lists the rest, and never changes its source."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from crossdock.cli.main import main
from crossdock.journal.backup import PARTIAL
from crossdock.journal.check import check
from crossdock.journal.completeness import MARK
from crossdock.journal.data_dir import DATABASE, DataDir, snapshot_name, snapshot_numbers
from crossdock.journal.salvage import REPORT, CannotSalvage, Salvaged, salvage
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.errors import Damaged
from tests.support.journals import Writer, at_rest, change, fingerprint, flip, state
from tests.support.scale import tries
from tests.support.server import Server

pytestmark = pytest.mark.fault


def no_progress(what: str, done: int, of: int) -> None:
    pass


def salvaged(source: Path) -> Salvaged:
    """Salvage into `new` beside the source. Checks that the source is unchanged and that the copy is sound."""
    before = fingerprint(source)
    report = salvage(source, source.parent / "new", no_progress)
    assert fingerprint(source) == before
    assert check(source.parent / "new", no_progress).faults == []
    return report


@pytest.mark.parametrize("snapshots", [0, 1, 3])
def test_an_undamaged_folder_is_copied_completely(tmp_path: Path, snapshots: int) -> None:
    at_rest(tmp_path / "data", snapshots=snapshots)
    report = salvaged(tmp_path / "data")
    assert not report.lost and not report.unreadable
    assert state(tmp_path / "new") == state(tmp_path / "data")


def test_the_new_folder_continues_the_entry_numbers(tmp_path: Path) -> None:
    story = at_rest(tmp_path / "data")
    report = salvaged(tmp_path / "data")
    journal = SqliteJournal(DataDir(tmp_path / "new"))
    assert journal.last == report.last == len(story.batches)
    assert journal.append(b"next") == len(story.batches) + 1
    journal.close()


def test_entries_after_a_damaged_one_are_copied(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    change(tmp_path / "data", "update journal set crc = crc + 1 where seq = (select max(seq) - 1 from journal)")
    report = salvaged(tmp_path / "data")
    assert report.missing == [(report.last - 1, report.last - 1)]
    assert report.jobs > 0


def test_events_of_a_job_whose_push_was_lost_are_omitted_and_reported(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "data")
    story = writer.story
    story.push("lost")
    story.push("kept")
    story.lease()
    writer.tell(story)
    writer.close()
    change(tmp_path / "data", "delete from journal where seq = 1")
    report = salvaged(tmp_path / "data")
    assert report.missing == [(1, 1)]
    assert [(each.event, each.jid) for each in report.dropped] == [("Leased", "lost")]
    assert report.jobs == 1
    assert json.loads((tmp_path / "new" / REPORT).read_bytes())["missing"] == [[1, 1]]


def test_the_snapshot_before_a_damaged_one_is_used(tmp_path: Path) -> None:
    at_rest(tmp_path / "data", snapshots=2)
    flip(tmp_path / "data" / snapshot_name(max(snapshot_numbers(tmp_path / "data"))), -40)
    report = salvaged(tmp_path / "data")
    assert len(report.unreadable) == 1 and not report.lost


def test_a_broken_btree_hides_no_entries(tmp_path: Path) -> None:
    at_rest(tmp_path / "data")
    good = state(tmp_path / "data")
    with (tmp_path / "data" / DATABASE).open("r+b") as file:
        file.write(b"\0" * 100)  # the file's header: SQLite no longer accepts it as a database
    with pytest.raises(Damaged):
        SqliteJournal(DataDir(tmp_path / "data"))
    report = salvaged(tmp_path / "data")
    assert not report.missing
    assert state(tmp_path / "new") == good


def test_salvage_is_exact_for_any_flipped_bit(tmp_path: Path) -> None:
    """An entry is copied as it was written, or listed as lost."""
    at_rest(tmp_path / "data", snapshots=1)
    good, random = state(tmp_path / "data"), Random(7)
    for n in range(tries(30, 500)):
        source = Path(shutil.copytree(tmp_path / "data", tmp_path / str(n) / "data"))
        files = [each for each in source.iterdir() if each.stat().st_size and each.name != MARK]
        file = random.choice(files)
        flip(file, random.randrange(file.stat().st_size))
        report = salvaged(source)
        assert report.lost or state(source.parent / "new") == good
        shutil.rmtree(source.parent)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("new exists", "exists; choose a folder that does not exist"),
        ("no source", "is not a folder; name the data folder"),
        ("empty", "can be read: no snapshot and no"),
        ("in use", "is in use by process"),
        ("cut short", "was interrupted; remove it"),
    ],
)
def test_invalid_sources_and_targets_are_refused(tmp_path: Path, what: str, message: str) -> None:
    source, dest = tmp_path / "data", tmp_path / "new"
    if what == "in use":
        writer = Writer(source)
    elif what == "empty":
        source.mkdir()
    elif what != "no source":
        at_rest(source)
    if what == "new exists":
        dest.mkdir()
    if what == "cut short":
        dest.with_name(dest.name + PARTIAL).mkdir()
    there = set(tmp_path.iterdir())
    with pytest.raises(CannotSalvage, match=message):
        salvage(source, dest, no_progress)
    assert set(tmp_path.iterdir()) == there
    if what == "in use":
        writer.close()


def test_a_server_with_a_damaged_log_recovers_its_jobs_by_salvage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an operator does: the server refuses to start, salvage copies, the server starts on the copy."""
    with closing(Server(tmp_path / "data", {"lake.on": "false"})) as server:
        with server.start().client() as client:
            for n in range(300):
                client.push(f"job-{n:05d}")
        server.kill()
        flip(server.data / f"{DATABASE}-wal", 32 + 200 * 4_120 + 2_000)
        server.spawn()
        assert server.wait() == 1 and "crossdock salvage" in server.log()
    assert main(["salvage", str(server.data), str(tmp_path / "new")]) == 0
    said = capsys.readouterr().out
    with closing(Server(tmp_path / "new")) as again, again.start().client() as client:
        jobs = client.info()["faktory"]["queues"]["default"]
        assert again.stop() == 0
    assert f"salvaged {jobs} jobs" in said
    assert jobs >= 299
