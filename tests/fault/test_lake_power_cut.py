"""Power cuts while the lake is written to an ext4 image. A cut is a copy of the image's file (see test_power_cut.py).

The journal is trimmed up to the lake's position, so everything up to that position must survive a cut.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from crossdock.lake.location import read_position
from crossdock.lake.table import Lake
from crossdock.lake.writer import Writer
from crossdock.model.errors import CrossdockError
from tests.lake.source import SERVER, ListSource, rows_in, rows_of, story
from tests.support import volumes

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(
        MISSING is not None,
        reason=f"NO POWER CUTS OF THE LAKE WERE TESTED: {MISSING}; only test_syncs.py replaces them",
    ),
]

IMAGE_MIB = 24


@pytest.fixture
def image(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "disk.img"
    volumes.make_ext4(image, IMAGE_MIB)
    with volumes.mounted(image, tmp_path / "disk"):
        yield image


def cuts(image: Path) -> Iterator[tuple[int, Path]]:
    """Cut the power after each segment; yield the reported position and the data folder as it is then."""
    data = image.parent / "disk" / "data"
    source = ListSource(story(100))
    writer = Writer(data / "lake", data, source, server=SERVER)
    try:
        for _ in writer.take(lambda: False):
            if writer.read % 8 == 0 or writer.read == len(source.entries):
                reported = writer.publish().last
                copy = image.with_name("copy.img")
                volumes.cut(image, copy)
                with volumes.mounted(copy, image.with_name("after")) as after:
                    yield reported, after / "data"
    finally:
        writer.close()


def test_the_reported_position_survives_a_power_cut(image: Path) -> None:
    seen = 0
    for reported, data in cuts(image):
        assert position(data) == Lake.open(data / "lake").last == reported
        assert rows_in(data / "lake") == rows_of(story(100)[:reported])
        seen += 1
    assert seen > 4


def test_a_lake_that_does_not_sync_loses_data(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows that the test above can detect a missing sync."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    assert any(lost(data, reported) for reported, data in cuts(image))


def position(data: Path) -> int:
    found = read_position(data, data / "lake")
    return 0 if found is None else found.last


def lost(data: Path, reported: int) -> bool:
    try:
        return Lake.open(data / "lake").last < reported
    except CrossdockError:
        return True


def test_a_cut_at_any_time_loses_nothing_that_was_reported(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The power fails right after delta-rs has committed, before anything of the commit is synced. The next writer
    continues with the journal that was trimmed up to the position."""
    entries = story(100)
    disk = image.parent / "disk" / "data"
    copies: list[Path] = []
    real = DeltaTable.create_write_transaction

    def commit(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        copies.append(image.with_name(f"cut-{len(copies)}.img"))
        volumes.cut(image, copies[-1])

    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", commit)
        writer = Writer(disk / "lake", disk, ListSource(entries), server=SERVER)
        for _ in writer.take(lambda: False):
            if writer.read % 16 == 0 or writer.read == len(entries):
                writer.publish()
        writer.close()
    assert len(copies) > 2
    for copy in copies:
        with volumes.mounted(copy, image.with_name("after")) as after:
            data = after / "data"
            reported = position(data)
            writer = Writer(data / "lake", data, ListSource(entries, trimmed=max(0, reported - 1)), server=SERVER)
            assert writer.state.last >= reported
            for _ in writer.take(lambda: False):
                pass
            writer.publish()
            writer.close()
            assert rows_in(data / "lake") == rows_of(entries)
