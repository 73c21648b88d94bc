"""A journal that lost its end is refused: no damage to the write-ahead log loses entries silently."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import pytest

from crossdock.journal.check import BROKEN, check
from crossdock.journal.completeness import MARK, RESTORED, UNSYNCED, read_mark, write_mark
from crossdock.journal.data_dir import DATABASE, LOCK, DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.sqlite import wal
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.model.errors import Damaged
from tests.support.scale import tries
from tests.support.server import Server

pytestmark = pytest.mark.fault

ENTRIES: Final = 200
WAL: Final = f"{DATABASE}-wal"
FRAME: Final = 24 + 4_096


def entry(seq: int) -> bytes:
    return b"batch %d " % seq * (1 + seq % 40)


def killed(path: Path, durability: str = "always", entries: int = ENTRIES) -> Path:
    """A folder as a SIGKILL leaves it, with its entries only in the log."""
    writing = path.with_name("writing")
    journal = SqliteJournal(DataDir(writing), durability)
    for seq in range(1, entries + 1):
        journal.append(entry(seq))
    shutil.copytree(writing, path)
    journal.close()
    shutil.rmtree(writing)
    (path / f"{DATABASE}-shm").unlink()
    return path


@pytest.fixture(scope="module")
def killed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return killed(tmp_path_factory.mktemp("killed") / "data")


@pytest.fixture
def data(killed_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed_folder, tmp_path / "data"))


def recovered(data: Path, **options: int) -> list[bytes]:
    journal = SqliteJournal(DataDir(data), **options)  # type: ignore[arg-type]
    try:
        return [each for _, each in journal.read(0)]
    finally:
        journal.close()


def is_complete(data: Path) -> bool:
    return recovered(data) == [entry(seq) for seq in range(1, ENTRIES + 1)]


def contents(data: Path) -> dict[str, bytes]:
    ignored = {f"{DATABASE}-shm", LOCK}  # SQLite's index of the log, and the id of the last process
    return {each.name: each.read_bytes() for each in data.iterdir() if each.is_file() and each.name not in ignored}


def flip(path: Path, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(bit // 8)
        [byte] = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def end_of_log(data: Path) -> int:
    """Number of bytes up to the last commit."""
    with (data / WAL).open("rb") as file:
        log = wal.Log(file)
        return 32 + FRAME * (1 + max(each.number for each in log.frames() if each.salts == log.salts and each.commit))


def assert_refused(data: Path, message: str) -> None:
    before = contents(data)
    for _ in range(2):
        with pytest.raises(Damaged, match=message):
            SqliteJournal(DataDir(data))
    assert contents(data) == before, "the folder must not be changed"
    report = check(data, lambda what, done, of: None)
    assert report.cure == BROKEN and any(message.split(".*")[0] in fault for fault in report.faults)


def test_a_flipped_bit_in_the_log_is_reported_with_the_entries_it_costs(data: Path) -> None:
    flip(data / WAL, (32 + 100 * FRAME + 2_000) * 8)
    assert_refused(data, f"to {ENTRIES} are missing from the end of the journal")


@pytest.mark.parametrize("bit", [0, 40, 100, 130, 200])
def test_a_flipped_bit_in_the_header_of_the_log_is_refused(data: Path, bit: int) -> None:
    flip(data / WAL, bit)
    assert_refused(data, f"entries 1 to {ENTRIES} are missing from the end of the journal")


@pytest.mark.parametrize("how", ["deleted", "empty", "cut short"])
def test_a_missing_log_is_refused(data: Path, how: str) -> None:
    if how == "deleted":
        (data / WAL).unlink()
    else:
        os.truncate(data / WAL, 0 if how == "empty" else 32 + 50 * FRAME)
    assert_refused(data, f"to {ENTRIES} are missing from the end of the journal")


def test_every_flipped_bit_in_the_log_is_refused_or_harmless(killed_folder: Path, tmp_path: Path) -> None:
    random, found, size = Random(31), 0, end_of_log(killed_folder)
    for n in range(tries(40, 2_000)):
        data = Path(shutil.copytree(killed_folder, tmp_path / str(n)))
        flip(data / WAL, random.randrange(size * 8))
        try:
            assert is_complete(data)
        except Damaged:
            found += 1
        shutil.rmtree(data)
    assert found > n / 2


def test_a_flipped_bit_is_detected_without_the_mark(killed_folder: Path, tmp_path: Path) -> None:
    """After a power cut the mark may be old.

    Any flip is detected, except in the last transaction, which then looks unsynced.
    """
    random, found = Random(32), 0
    last = end_of_log(killed_folder) - 2 * FRAME
    for n in range(tries(40, 1_000)):
        data = Path(shutil.copytree(killed_folder, tmp_path / str(n)))
        write_mark(data, 0, 0)
        flip(data / WAL, random.randrange(last * 8))
        try:
            assert len(recovered(data)) >= ENTRIES - 2, "the flip can only remove the commit flag before the last"
        except Damaged:
            found += 1
        shutil.rmtree(data)
    assert found > n * 0.8


def test_unsynced_transactions_are_not_damage_under_everysec(tmp_path: Path) -> None:
    data = killed(tmp_path / "data", "everysec")
    assert read_mark(data) == (0, UNSYNCED, "")
    flip(data / WAL, (32 + 100 * FRAME + 2_000) * 8)
    assert 0 < len(recovered(data)) < ENTRIES


def test_a_missing_synced_transaction_is_detected_under_everysec(tmp_path: Path) -> None:
    data = tmp_path / "data"
    journal = SqliteJournal(DataDir(tmp_path / "writing"), "everysec")
    for seq in range(1, 21):
        journal.append(entry(seq))
    journal.sync()
    journal.append(entry(21))
    shutil.copytree(tmp_path / "writing", data)
    journal.close()
    os.truncate(data / WAL, 0)
    assert_refused(data, "entries 1 to 20 are missing from the end of the journal")


def test_a_log_that_another_program_has_checkpointed_is_complete(data: Path) -> None:
    """The sqlite3 shell does this when it exits, and deletes the log."""
    run_sqlite_shell(data)
    assert not (data / WAL).exists()
    assert is_complete(data)


def test_entries_deleted_by_another_program_are_detected(data: Path) -> None:
    flip(data / WAL, (32 + 100 * FRAME + 2_000) * 8)
    run_sqlite_shell(data)
    assert_refused(data, f"to {ENTRIES} are missing from the end of the journal")


def run_sqlite_shell(data: Path) -> None:
    db = sqlite3.connect(data / DATABASE)
    db.execute("select count(*) from journal").fetchall()
    db.close()


def test_a_start_continues_with_new_salts(data: Path) -> None:
    """With new salts, old frames after the end of the log are never taken for damage of the new log."""
    salts = log_salts(data)
    journal = SqliteJournal(DataDir(data))
    journal.append(entry(ENTRIES + 1))
    assert log_salts(data) != salts
    journal.close()


def log_salts(data: Path) -> object:
    with (data / WAL).open("rb") as file:
        return wal.Log(file).salts


@pytest.mark.parametrize("slot", [0, 4_096])
def test_a_flipped_bit_in_the_mark_loses_nothing_and_is_reported(
    data: Path, slot: int, caplog: pytest.LogCaptureFixture
) -> None:
    flip(data / MARK, (slot + 9) * 8)
    report = check(data, lambda what, done, of: None)
    assert [fault for fault in report.faults if "one of the two slots" in fault]
    assert is_complete(data)
    assert "one of the two slots" in caplog.text
    assert read_mark(data) == (ENTRIES, 0, "")


def test_a_missing_or_unreadable_mark_is_refused(data: Path) -> None:
    (data / MARK).rename(data / "elsewhere")
    assert_refused(data, "journal.mark is missing, so the journal may be incomplete")
    (data / MARK).write_bytes(b"x" * 8_192)
    assert_refused(data, "journal.mark is damaged")


def test_a_folder_with_only_the_mark_is_refused(data: Path) -> None:
    for each in data.iterdir():
        if each.name != MARK:
            each.unlink()
    with pytest.raises(Damaged, match=r"journal.db is missing or empty, but journal.mark is there"):
        SqliteJournal(DataDir(data))
    assert [each.name for each in data.iterdir()] == [MARK]


def test_missing_entries_that_a_snapshot_or_the_lake_holds_are_detected(data: Path) -> None:
    with pytest.raises(Damaged, match=f"entries {ENTRIES + 1} to {ENTRIES + 2} are missing .* but the lake holds them"):
        SqliteJournal(DataDir(data), lake=ENTRIES + 2)
    (data / f"snapshot-{ENTRIES + 1:016d}").write_bytes(b"")
    assert_refused(data, f"entry {ENTRIES + 1} is missing from the end of the journal")


def test_a_restored_journal_may_be_behind_the_lake(data: Path) -> None:
    write_mark(data, ENTRIES, RESTORED)
    SqliteJournal(DataDir(data), lake=ENTRIES + 2).close()
    assert read_mark(data) == (ENTRIES, RESTORED, "")


def test_a_damaged_record_of_the_older_snapshot_trims_no_needed_entry(tmp_path: Path) -> None:
    journal = SqliteJournal(DataDir(tmp_path))
    for seq in range(1, 21):
        journal.append(entry(seq))
    for seq in (5, 10):
        (tmp_path / f"snapshot-{seq:016d}").write_bytes(b"")
        journal.install(Snapshot(seq, tmp_path / f"snapshot-{seq:016d}"))
    journal._db.execute("update meta set value = 4096 + value where key = 'previous'")
    while journal.trim(100):
        pass
    assert journal.first == 11
    journal.close()


KILLED_AT: Final = """
import os, signal, sys
from pathlib import Path
from crossdock.journal.data_dir import DataDir
from crossdock.journal.sqlite.journal import SqliteJournal

left = int(sys.argv[2])

def profile(frame, event, arg):
    global left
    path = frame.f_code.co_filename
    if event == "c_call" and "/crossdock/journal/" in path and not path.endswith("/wal.py"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.setprofile(profile)
journal = SqliteJournal(DataDir(Path(sys.argv[1])))
sys.setprofile(None)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sound", [True, False], ids=["sound", "damaged"])
def test_a_kill_at_each_step_of_a_start_changes_nothing(killed_folder: Path, tmp_path: Path, sound: bool) -> None:
    """All steps use one folder: each start finds what the previous one left."""
    data = Path(shutil.copytree(killed_folder, tmp_path / "data"))
    if not sound:
        flip(data / WAL, (32 + 100 * FRAME + 2_000) * 8)
    steps = 0
    for at in steps_of_a_start():
        ended = subprocess.run([sys.executable, "-c", KILLED_AT, data, str(at)], capture_output=True, check=False)
        if ended.returncode != -9:
            break
        steps += 1
    assert steps > (15 if sound else 2)
    if sound:
        assert is_complete(data)
    else:
        assert_refused(data, f"to {ENTRIES} are missing from the end of the journal")


def steps_of_a_start() -> Iterator[int]:
    yield from range(1, 10_000, tries(4, 1))


def test_a_server_refuses_to_start_reports_the_missing_entries_and_changes_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path / "data", {"lake.on": "false"})
    try:
        with server.start().client() as client:
            for n in range(300):
                client.push(f"job-{n:05d}")
        server.kill()
        assert read_mark(server.data).seq >= 300  # type: ignore[union-attr]
        flip(server.data / WAL, (32 + 200 * FRAME + 2_000) * 8)
        before = contents(server.data)
        for _ in range(2):
            server.spawn()
            assert server.wait() == 1
            assert "are missing from the end of the journal" in server.log()
            assert "Traceback" not in server.log()
        assert contents(server.data) == before
    finally:
        server.close()
