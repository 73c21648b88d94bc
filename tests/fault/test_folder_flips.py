"""A flipped bit in the data folder is refused, reported or harmless: no data is lost silently."""

import shutil
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from crossdock.cli import diagnosis
from crossdock.journal.check import check
from crossdock.journal.data_dir import BALLAST, DATABASE, LOCK, DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from crossdock.lake.location import POSITION
from crossdock.model.errors import Damaged
from crossdock.server.lake_keeper import last_entry
from crossdock.settings.schema import ServerSettings, Settings
from tests.support.patience import wait_until
from tests.support.picture import picture
from tests.support.scale import tries
from tests.support.server import Server

pytestmark = [pytest.mark.fault, pytest.mark.slow]


def no_progress(what: str, done: int, of: int) -> None:
    pass


def settings(data: Path) -> Settings:
    return Settings(server=ServerSettings(data=data))


def state(data: Path) -> Any:
    """The state that a start would recover. Raises Damaged."""
    journal = SqliteJournal(DataDir(data), lake=last_entry(settings(data)))
    try:
        return picture(recover(journal).state)
    finally:
        journal.close()


def history(data: Path) -> list[dict[str, Any]]:
    return [row for path in sorted(data.glob("lake/date=*/*")) for row in pq.read_table(path).to_pylist()]


def faults(data: Path) -> list[str]:
    lake = diagnosis.verify_lake(settings(data), no_progress)
    return [*check(data, no_progress, last_entry(settings(data))).faults, *lake.faults]


def has_snapshots(data: Path, count: int) -> bool:
    return len(list(data.glob("snapshot-*[0-9]"))) >= count


@pytest.fixture(scope="module")
def killed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a killed server: two snapshots, entries in database and log, a lake."""
    data = tmp_path_factory.mktemp("killed") / "data"
    with closing(Server(data, {"lake.segment_s": 1}, fault="frequent-compaction")) as server:
        with server.start().client() as client:
            for snapshots in (1, 2):
                for n in range(1_200):
                    client.push(f"job-{snapshots}-{n:05d}")
                wait_until(partial(has_snapshots, data, snapshots), "a snapshot is installed")
            for _ in range(200):
                found = client.fetch("default")
                assert found is not None
                client.ack(found["jid"])
        wait_until((data / POSITION).exists, "the lake has a segment")
        server.kill()
    for name in (BALLAST, LOCK, f"{DATABASE}-shm", "admin.sock"):
        (data / name).unlink(missing_ok=True)
    assert faults(data) == []
    return data


def test_a_flipped_bit_loses_nothing_silently(killed_folder: Path, tmp_path: Path) -> None:
    random = Random(57)
    good, past = state(Path(shutil.copytree(killed_folder, tmp_path / "good"))), history(killed_folder)
    files = sorted(
        each.relative_to(killed_folder) for each in killed_folder.rglob("*") if each.is_file() and each.stat().st_size
    )
    found: Counter[str] = Counter()
    for n in range(tries(24, 1_000)):
        data = Path(shutil.copytree(killed_folder, tmp_path / str(n)))
        file = random.choice([each for each in files if (each.parts[0] == "lake") is (n % 3 == 0)])
        flip(data / file, random)
        reported = faults(data)
        try:
            same = state(data) == good
        except Damaged:
            found["refused"] += 1
            assert reported, f"{file}: refused by the server but not reported by check"
        else:
            assert same, f"{file}: the server starts with a different state"
            assert reported or history(data) == past, f"{file}: the history differs but check reports nothing"
            found["reported" if reported else "harmless"] += 1
        shutil.rmtree(data)
    print(dict(found))
    assert found["refused"] and found["reported"]


def flip(path: Path, random: Random) -> None:
    """Flip one bit of the used part: most of a log that was extended in advance is unused."""
    content = bytearray(path.read_bytes())
    bit = random.randrange(len(bytes(content).rstrip(b"\0")) * 8)
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
