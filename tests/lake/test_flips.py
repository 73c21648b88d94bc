"""Flipped bits in the files of the lake: each is reported by `crossdock check`, or refused by the lake's process.

`LAKE_FLIPS` is how many bits of each kind of file are flipped; a few by default.
"""

import os
import shutil
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Final

import pytest

from crossdock.cli.main import main
from crossdock.lake import manifest
from crossdock.lake.checksums import read_footer
from crossdock.lake.exporter import Exporter
from crossdock.lake.messages import Options
from crossdock.lake.query import Filter, LakeNotWhole, choose
from crossdock.lake.segments import look
from crossdock.model.clock import Now
from crossdock.model.errors import CrossdockError
from crossdock.server.lake_keeper import LakeKeeper
from crossdock.settings.schema import ServerSettings, Settings
from tests.lake.source import Row, rows_in
from tests.support.journals import Writer
from tests.support.states import eventful

FLIPS: Final = int(os.environ.get("LAKE_FLIPS", "25"))
SEGMENTS: Final = "events/*/*.parquet"


class Folder:
    """The data folder of a server that has stopped. The newest batch of its journal is not in the lake yet."""

    def __init__(self, data: Path) -> None:
        self.data, self.lake, self._whole = data, data / "lake", data.with_name("whole")
        server = Writer(data)
        server.tell(eventful())
        self._export()
        server.story.now = Now(server.story.now.wall + 86_400.0, server.story.now.steady + 86_400.0)
        for jid in ("of-the-next-day", "and-another", "one-more"):
            server.push(jid)
            self._export()
        self.last = server.journal.last
        server.push("not-in-the-lake")
        server.close()
        shutil.copytree(self.lake, self._whole)
        self.rows = rows_in(self.lake)
        self.after = self.continued()
        self.restore()

    def _export(self) -> None:
        exporter = Exporter(Options(data=self.data, folder=self.lake, segment_s=0.0), lambda position: None)
        try:
            while exporter.step():
                pass
        finally:
            exporter.close()

    def restore(self) -> None:
        shutil.rmtree(self.lake)
        shutil.copytree(self._whole, self.lake)

    def continued(self) -> dict[int, Row]:
        """The rows when the lake's process has taken the rest. Raises CrossdockError if it refuses."""
        self._export()
        return rows_in(self.lake)

    def verb(self, *words: str) -> int:
        return main([*words, "--data", str(self.data)])

    def flip(self, path: Path, bit: int) -> None:
        data = bytearray(path.read_bytes())
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)

    @property
    def held_at(self) -> int | None:
        """Where a server that starts now believes the lake to be."""
        settings = Settings(server=ServerSettings(data=self.data))
        return LakeKeeper(settings, SimpleNamespace(written_bytes=0), SimpleNamespace(), lambda: 0).last  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("flips") / "data")


@pytest.fixture
def folder(made: Folder) -> Folder:
    made.restore()
    return made


def flips(folder: Folder, pattern: str) -> list[tuple[Path, int]]:
    random, files = Random(7), sorted(folder.lake.glob(pattern))
    sizes = [path.stat().st_size for path in files]
    return [(path, random.randrange(8 * path.stat().st_size)) for path in random.choices(files, weights=sizes, k=FLIPS)]


@pytest.mark.parametrize("pattern", [SEGMENTS, manifest.DONE, manifest.NEXT])
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


@pytest.mark.parametrize("name", [manifest.DONE, manifest.NEXT])
def test_behind_a_flipped_manifest_nothing_is_written_and_nothing_is_trimmed(folder: Folder, name: str) -> None:
    """It must not begin from 0, leave batches out, or let the journal be trimmed beyond what the lake has."""
    for path, bit in flips(folder, name):
        folder.flip(path, bit)
        before = {each: each.read_bytes() for each in folder.lake.rglob("*") if each.is_file()}
        with pytest.raises(CrossdockError, match=name):
            folder.continued()
        assert {each: each.read_bytes() for each in folder.lake.rglob("*") if each.is_file()} == before
        assert folder.held_at == (None if name == manifest.DONE else folder.last)
        folder.restore()


def test_every_bit_of_a_footer_is_covered_when_the_lake_is_looked_at(folder: Folder) -> None:
    path = min(folder.lake.glob(SEGMENTS))
    good = path.read_bytes()
    start = read_footer(path).start
    bits = Random(3).sample(range(8 * start, 8 * len(good)), 2 * FLIPS)
    for bit in bits:
        folder.flip(path, bit)
        assert [each.path for each in look(folder.lake).aside] == [path]
        path.write_bytes(good)


def test_a_job_whose_bytes_have_rotted_is_not_pushed_again(folder: Folder) -> None:
    assert len(choose(folder.lake, Filter(outcome="pushed")).numbers) > 1
    for path in sorted(folder.lake.glob(SEGMENTS)):
        good = path.read_bytes()
        folder.flip(path, 8 * (read_footer(path).start // 2))
        with pytest.raises(LakeNotWhole, match=path.name):
            choose(folder.lake, Filter(outcome="pushed"))
        path.write_bytes(good)


@pytest.mark.parametrize(
    "raised", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), MemoryError(), ValueError("bad")]
)
def test_whatever_pyarrow_raises_is_the_fault_of_that_file(
    folder: Folder, raised: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("pyarrow.parquet.read_metadata", fail)
    assert (folder.verb("check"), folder.verb("lake", "status")) == (1, 1)
    said = capsys.readouterr().out
    assert all(path.name in said for path in folder.lake.glob(SEGMENTS))
    monkeypatch.undo()
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", fail)
    assert folder.verb("check") == 1
    assert "is damaged: " in capsys.readouterr().out
