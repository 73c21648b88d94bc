"""Damage on disk is detected and reported; no data is deleted, repaired or delivered."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import apsw
import pytest

from crossdock.cli import diagnosis
from crossdock.journal import compaction
from crossdock.journal.data_dir import BALLAST, DATABASE, DataDir, snapshot_name
from crossdock.journal.port import Snapshot
from crossdock.journal.recovery import recover
from crossdock.journal.snapshot import file
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.errors import Damaged
from crossdock.settings.loading import Found, load
from tests.support.server import Server
from tests.support.states import Story, eventful, picture

pytestmark = pytest.mark.fault


def closed_journal(path: Path, story: Story, *, with_snapshot: bool = False) -> DataDir:
    folder = DataDir(path)
    journal = SqliteJournal(folder)
    for entry in story.batches:
        journal.append(entry)
    if with_snapshot:
        made = compaction.compact(folder.path, journal.last - 2)
        journal.install(Snapshot(made.seq, path / made.file))
    journal.close()
    return folder


def change(folder: DataDir, sql: str) -> None:
    with apsw.Connection(str(folder.path / DATABASE)) as db:
        db.execute(sql)
    db.close()


def recovered(folder: DataDir) -> object:
    journal = SqliteJournal(folder)
    try:
        return picture(recover(journal).state)
    finally:
        journal.close()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("update journal set entry = zeroblob(length(entry)) where seq = 3", "entry 3 fails its"),
        ("update journal set entry = 'text' where seq = 3", "entry 3 fails its"),
        ("update journal set entry = cast(x'ff' as text) where seq = 3", "cannot be read"),
        ("update journal set crc = crc + 1 where seq = 2", "entry 2 fails its checksum"),
        ("update journal set entry = (select entry from journal where seq = 5) where seq = 4", "entry 4 fails its"),
        ("delete from journal where seq = 4", "4 to 4 are missing"),
        ("delete from journal where seq <= 2", "1 to 2 are missing"),
        ("update meta set value = 2 where key = 'format'", "format 2"),
        ("alter table journal rename to journey", "the journal has the tables"),
        ("alter table journal rename column seq to sea", "the journal has the tables"),
        ("drop table hold", "the journal has the tables"),
    ],
)
def test_a_changed_entry_is_reported_as_damage(tmp_path: Path, sql: str, message: str) -> None:
    folder = closed_journal(tmp_path, eventful())
    change(folder, sql)
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(Damaged, match=message):
        recovered(folder)
    assert (tmp_path / DATABASE).read_bytes() == before, "recovery must not repair the file"


def test_swapped_entries_are_reported_as_damage(tmp_path: Path) -> None:
    """The checksum includes the entry's number, so it does not match at another position."""
    folder = closed_journal(tmp_path, eventful())
    change(folder, "update journal set seq = -1 where seq = 3")
    change(folder, "update journal set seq = 3 where seq = 4")
    with pytest.raises(Damaged, match="entry 3 fails its checksum"):
        recovered(folder)


def flips(size: int, count: int) -> list[int]:
    return Random(20).sample(range(size * 8), count)


def each_flip(path: Path, count: int, check: Callable[[], None]) -> None:
    good = path.read_bytes()
    for bit in flips(len(good), count):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bad)
        check()
    path.write_bytes(good)


def test_flipped_bits_of_the_database_are_found_or_harmless(tmp_path: Path) -> None:
    """Recovery returns exactly the state that was written, or raises Damaged."""
    story = eventful()
    folder = closed_journal(tmp_path, story)
    good = picture(story.state)
    found = 0

    def check() -> None:
        nonlocal found
        try:
            assert recovered(folder) == good
        except Damaged:
            found += 1
        for suffix in ("-wal", "-shm"):
            (tmp_path / (DATABASE + suffix)).unlink(missing_ok=True)

    each_flip(tmp_path / DATABASE, 1_500, check)
    assert found > 100


def test_flipped_bits_of_the_installed_snapshot_are_found(tmp_path: Path) -> None:
    folder = closed_journal(tmp_path, eventful(), with_snapshot=True)
    [path] = tmp_path.glob("snapshot-*")

    def check() -> None:
        with pytest.raises(Damaged, match="restore a backup"):
            recovered(folder)

    each_flip(path, 200, check)
    path.write_bytes(path.read_bytes()[:-3])
    check()
    path.unlink()
    check()


def test_the_server_refuses_to_start_and_deletes_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    story = eventful()
    closed_journal(data, story, with_snapshot=True)
    path = data / snapshot_name(len(story.batches) - 2)
    path.write_bytes(path.read_bytes()[:-1])
    before = {each.name: each.read_bytes() for each in data.glob("snapshot-*")}
    server = Server(data)
    try:
        server.spawn()
        assert server.wait() == 1
        assert "restore a backup" in server.log()
        assert "Traceback" not in server.log()
    finally:
        server.close()
    assert {each.name: each.read_bytes() for each in data.glob("snapshot-*")} == before
    with pytest.raises(Damaged):
        file.load(path)


@pytest.mark.parametrize("how", ["missing", "empty"])
@pytest.mark.parametrize("left", ["a snapshot", "the log", "the reserve"])
def test_a_missing_journal_is_not_created_again(tmp_path: Path, how: str, left: str) -> None:
    """As after an incomplete restore or copy. SQLite would delete the log, and with it the jobs."""
    folder = closed_journal(tmp_path, eventful(), with_snapshot=left == "a snapshot")
    database = tmp_path / DATABASE
    if left == "the log":
        (tmp_path / f"{DATABASE}-wal").write_bytes(database.read_bytes())
    elif left == "the reserve":
        (tmp_path / BALLAST).write_bytes(b"x")
    if how == "missing":
        database.unlink()
    else:
        database.write_bytes(b"")
    before = contents(tmp_path)
    with pytest.raises(Damaged, match=r"is missing or empty, but .* is there; put journal.db back, or restore"):
        SqliteJournal(folder)
    assert contents(tmp_path) == before
    warnings = diagnosis.warnings(load({"server.data": Found(str(tmp_path), "flag")}, {}))
    assert any("is missing or empty" in each for each in warnings), "doctor reports it too"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
