"""An older server on a folder that a newer one wrote: it refuses, names the version and changes nothing."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import msgspec
import pytest

from crossdock import __version__
from crossdock.cli.main import main
from crossdock.journal.compaction import compact
from crossdock.journal.data_dir import DATABASE, DataDir
from crossdock.journal.port import Snapshot
from crossdock.journal.snapshot import file
from crossdock.journal.sqlite import schema
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.lake.checksums import seal
from crossdock.lake.location import FORMAT, POSITION
from crossdock.model.commands.core import Enqueue
from crossdock.model.errors import Newer
from crossdock.model.events.codec import (
    EVENT_VERSION,
    JournalEntry,
    decode_entry,
    encode_entry,
    entry_checksum,
    refuse_newer_entry,
)
from tests.model.bench import Bench, spec
from tests.support.patience import PATIENCE_S

OFF = [word for protocol in ("faktory", "workq", "masenko", "redis") for word in ("--listen", f"{protocol}=off")]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("CROSSDOCK_")}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A journal of a few entries, and a snapshot of the first of them."""
    bench = Bench()
    for number in range(5):
        bench.do(Enqueue("faktory", [spec(f"job-{number:04}")]))
    folder = DataDir(tmp_path / "data")
    journal = SqliteJournal(folder)
    for entry in bench.batches:
        journal.append(entry)
    made = compact(folder.path, 3)
    journal.install(Snapshot(made.seq, folder.path / made.file))
    journal.close()
    return tmp_path / "data"


def change(data: Path, sql: str, *values: object, in_log: bool = False) -> None:
    """`in_log`: it stays in SQLite's log, as after a kill."""
    db = apsw.Connection(str(data / DATABASE))
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, in_log)
    db.execute(sql, values)
    db.close()


def newer_format(data: Path) -> None:
    change(data, "update meta set value = 7 where key = 'format'")
    change(data, "insert or replace into meta values ('crossdock', 9001002)")


def newer_tables(data: Path) -> None:
    newer_format(data)
    change(data, "create table more (x)")


def newer_events(data: Path) -> None:
    entry = encode_entry(JournalEntry(EVENT_VERSION + 1, 1.0, 1.0, []))
    change(data, "insert into journal values (6, ?, ?)", entry_checksum(6, entry), entry)


def newer_events_in_the_log(data: Path) -> None:
    entry = encode_entry(JournalEntry(EVENT_VERSION + 1, 1.0, 1.0, []))
    change(data, "insert into journal values (6, ?, ?)", entry_checksum(6, entry), entry, in_log=True)
    assert (data / f"{DATABASE}-wal").stat().st_size


def unknown_events(data: Path) -> None:
    entry = msgspec.msgpack.encode([EVENT_VERSION + 1, 1.0, 1.0, [["teleported", 1.0, {"a": 1}]], "more"])
    change(data, "insert into journal values (6, ?, ?)", entry_checksum(6, entry), entry)


def newer_snapshot(data: Path, member: int = 0) -> None:
    [path] = data.glob("snapshot-*[0-9]")
    content = path.read_bytes()
    magic, block = len(file._MAGIC), file._BLOCK
    size, _ = block.unpack_from(content, magic)
    begin = magic + block.size
    header = msgspec.msgpack.decode(content[begin : begin + size])
    header[member] += 1
    path.write_bytes(content[:magic] + file._block([*header, "more"]) + content[begin + size :])


def newer_lake(data: Path) -> None:
    (data / "lake").mkdir()
    reported = {"format": FORMAT + 1, "position": "what a newer one writes"}
    (data / POSITION).write_bytes(seal(msgspec.json.encode(reported)))


def fingerprint(data: Path) -> dict[str, str]:
    """All files except the lock, which has the last process id, and SQLite's index of the log, which is derived."""
    return {
        str(path.relative_to(data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data.rglob("*"))
        if path.is_file() and path.name not in ("lock", f"{DATABASE}-shm")
    }


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (
            newer_format,
            f"the journal's format 7 was written by Crossdock 9.1.2; this is Crossdock {__version__}",
        ),
        (
            newer_tables,
            f"the journal's format 7 was written by Crossdock 9.1.2; this is Crossdock {__version__}",
        ),
        (newer_events, f"journal entry 6, of event version {EVENT_VERSION + 1} was written by a newer"),
        (newer_events_in_the_log, f"journal entry 6, of event version {EVENT_VERSION + 1} was written by a newer"),
        (unknown_events, f"journal entry 6, of event version {EVENT_VERSION + 1} was written by a newer"),
        (newer_snapshot, f"the snapshot's format {file._FORMAT + 1} was written by a newer Crossdock; this is"),
        (
            lambda data: newer_snapshot(data, 1),
            f"the snapshot, of event version {EVENT_VERSION + 1} was written by a newer",
        ),
        (newer_lake, "the lake in data/lake, of format 4 was written by a newer Crossdock; this is"),
    ],
    ids=["format", "tables", "events", "log", "unknown-events", "snapshot", "snapshot-events", "lake"],
)
def test_an_older_server_refuses_a_newer_folder_and_changes_nothing(
    data: Path,
    harm: Callable[[Path], None],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(data.parent)
    harm(data)
    before = fingerprint(data)
    ended = subprocess.run(
        [sys.executable, "-m", "crossdock", "up", "--data", "data", *OFF],
        env=CLEAN, cwd=data.parent, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"crossdock: {says}") and ended.stderr.count("\n") == 1
    assert ended.stderr.endswith(
        "; nothing was changed: start the newer Crossdock again, or restore a backup that was made before the upgrade\n"
    )
    assert fingerprint(data) == before
    assert main(["doctor", "--data", "data"]) == 1
    assert says in capsys.readouterr().out
    assert main(["check", "--data", "data"]) == 1
    assert says.partition(";")[0] in capsys.readouterr().out.replace(f"{data.parent}/", "")
    assert fingerprint(data) == before


def test_the_newest_version_that_wrote_a_folder_is_recorded(data: Path) -> None:
    def signed() -> object:
        db = apsw.Connection(str(data / DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return db.execute("select value from meta where key = 'crossdock'").get
        finally:
            db.close()

    number = signed()
    assert isinstance(number, int) and schema.written_by(number) == "" and schema.written_by(number + 1)
    change(data, "update meta set value = 9001002 where key = 'crossdock'")
    SqliteJournal(DataDir(data)).close()
    assert signed() == 9_001_002, "the newest version that wrote here, though this one can read it"
    change(data, "delete from meta where key = 'crossdock'")
    SqliteJournal(DataDir(data)).close()
    assert signed() == number, "also in a journal without a recorded version"


def test_bytes_that_are_not_an_entry_are_not_called_newer() -> None:
    refuse_newer_entry(1, b"")
    refuse_newer_entry(1, b"\xc1\xff")
    refuse_newer_entry(1, encode_entry(JournalEntry(EVENT_VERSION, 1.0, 1.0, [])))
    entry = encode_entry(JournalEntry(EVENT_VERSION + 3, 1.0, 1.0, []))
    assert decode_entry(entry).version == EVENT_VERSION + 3
    with pytest.raises(Newer, match=f"entry 9, of event version {EVENT_VERSION + 3} was written by Crossdock 7.0.0"):
        refuse_newer_entry(9, entry, "7.0.0")
