"""Flipped bits in the files of the lake: each is reported by `crossdock check`, or refused by the exporter.

The environment variable `LAKE_FLIPS` sets how many bits are flipped per kind of file.
"""

import os
import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Final

import pyarrow as pa
import pytest

from crossdock.cli.main import main
from crossdock.lake import maintenance
from crossdock.lake.checksums import read_footer
from crossdock.lake.exporter import Exporter
from crossdock.lake.location import POSITION
from crossdock.lake.maintenance import Maintenance
from crossdock.lake.messages import Chores, Options
from crossdock.lake.query import Filter, LakeNotWhole, choose
from crossdock.lake.verify import verify
from crossdock.model.clock import Now
from crossdock.model.errors import CrossdockError
from crossdock.server.lake_keeper import LakeKeeper
from crossdock.settings.schema import ServerSettings, Settings
from tests.lake.source import Row, rows_in
from tests.support.journals import Writer
from tests.support.states import eventful

FLIPS: Final = int(os.environ.get("LAKE_FLIPS", "25"))
SEGMENTS: Final = "lake/date=*/*.parquet"
ENTRIES: Final = "lake/_delta_log/*.json"
CHECKPOINT: Final = "lake/_delta_log/*checkpoint*"
SUMS: Final = "lake/_checkpoints.json"


class Folder:
    """The data folder of a server that has stopped. The newest entry of its journal is not in the lake yet. The log has
    a checkpoint, and entries before and after it."""

    def __init__(self, data: Path) -> None:
        self.data, self.lake, self._whole = data, data / "lake", data.with_name("whole")
        server = Writer(data)
        server.tell(eventful())
        self._export()
        server.story.now = Now(server.story.now.wall + 86_400.0, server.story.now.steady + 86_400.0)
        for jid in ("of-the-next-day", "and-another", "one-more", "the-last"):
            server.push(jid)
            self._export()
            if jid == "one-more":
                Maintenance(Chores(data=data, location=str(self.lake))).checkpoint()
        self.last = server.journal.last
        server.push("not-in-the-lake")
        server.close()
        shutil.copytree(self.lake, self._whole)
        self._position = (data / POSITION).read_bytes()
        self.rows = rows_in(self.lake)
        self.after = self.continued()
        self.restore()

    def _export(self) -> None:
        exporter = Exporter(Options(data=self.data, location=str(self.lake), segment_s=0.0), lambda position: None)
        try:
            while exporter.step():
                pass
        finally:
            exporter.close()

    def restore(self) -> None:
        shutil.rmtree(self.lake)
        shutil.copytree(self._whole, self.lake)
        (self.data / POSITION).write_bytes(self._position)

    def continued(self, *, sound: bool = True) -> dict[int, Row]:
        """The rows after the exporter has written the rest. Raises CrossdockError if it refuses."""
        self._export()
        return rows_in(self.lake, sound=sound)

    def verb(self, *words: str) -> int:
        return main([*words, "--data", str(self.data)])

    def flip(self, path: Path, bit: int) -> None:
        data = bytearray(path.read_bytes())
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)

    @property
    def held_at(self) -> int:
        """The position of the lake as a starting server reads it."""
        settings = Settings(server=ServerSettings(data=self.data))
        return LakeKeeper(settings, SimpleNamespace(written_bytes=0), SimpleNamespace(), lambda: 0).last  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maintenance, "CHECKPOINT_EVERY", 1)
        return Folder(tmp_path_factory.mktemp("flips") / "data")


@pytest.fixture
def folder(made: Folder) -> Folder:
    made.restore()
    return made


def footer_at(path: Path) -> int:
    with pa.OSFile(str(path)) as file:
        return read_footer(file).start


def flips(folder: Folder, pattern: str) -> list[tuple[Path, int]]:
    random, files = Random(7), sorted(folder.data.glob(pattern))
    sizes = [path.stat().st_size for path in files]
    return [(path, random.randrange(8 * path.stat().st_size)) for path in random.choices(files, weights=sizes, k=FLIPS)]


@pytest.mark.parametrize("pattern", [SEGMENTS, ENTRIES, CHECKPOINT, SUMS, POSITION])
def test_no_flipped_bit_is_a_silent_loss_or_a_traceback(
    folder: Folder, pattern: str, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = []
    for path, bit in flips(folder, pattern):
        folder.flip(path, bit)
        reported = folder.verb("check") == 1
        said = capsys.readouterr().out
        folder.verb("lake", "status")
        assert not reported or path.name in said
        try:
            harmless = rows_in(folder.lake) == folder.rows and folder.continued() == folder.after
        except (CrossdockError, AssertionError):
            harmless = False
        if not reported and not harmless:
            silent.append((path, bit))
        folder.restore()
    assert silent == []


@pytest.mark.parametrize("pattern", [ENTRIES, CHECKPOINT, SUMS, POSITION])
def test_with_a_damaged_log_the_journal_is_not_trimmed_beyond_the_lake(folder: Folder, pattern: str) -> None:
    """The exporter must not start from 0 or skip entries. What it refuses it does not change."""
    for path, bit in flips(folder, pattern):
        folder.flip(path, bit)
        before = {each: each.read_bytes() for each in folder.lake.rglob("*.*") if each.is_file()}
        try:
            assert folder.continued(sound=False) == folder.after  # an entry before the checkpoint is not read
            assert folder.held_at == folder.last + 1
        except CrossdockError:
            assert {each: each.read_bytes() for each in folder.lake.rglob("*.*") if each.is_file()} == before
            assert folder.held_at <= folder.last
        folder.restore()


def test_a_flipped_bit_anywhere_in_a_footer_is_detected(folder: Folder) -> None:
    path = min(folder.data.glob(SEGMENTS))
    good = path.read_bytes()
    start = footer_at(path)
    bits = Random(3).sample(range(8 * start, 8 * len(good)), 2 * FLIPS)
    for bit in bits:
        folder.flip(path, bit)
        (fault,) = verify(folder.lake).faults
        assert path.name in fault
        path.write_bytes(good)


def test_a_job_with_damaged_bytes_is_not_pushed_again(folder: Folder) -> None:
    assert len(choose(folder.lake, Filter(outcome="pushed")).numbers) > 1
    for path in sorted(folder.data.glob(SEGMENTS)):
        good = path.read_bytes()
        folder.flip(path, 8 * (footer_at(path) // 2))
        with pytest.raises(LakeNotWhole, match=path.name):
            choose(folder.lake, Filter(outcome="pushed"))
        path.write_bytes(good)


@pytest.mark.parametrize(
    "raised", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), MemoryError(), ValueError("bad")]
)
def test_any_error_of_pyarrow_is_reported_as_a_fault_of_the_file(
    folder: Folder, raised: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("pyarrow.parquet.read_metadata", fail)
    assert folder.verb("check") == 1
    said = capsys.readouterr().out
    assert all(path.name in said for path in folder.data.glob(SEGMENTS))
    monkeypatch.undo()
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", fail)
    assert folder.verb("check") == 1
    assert "is damaged: " in capsys.readouterr().out
