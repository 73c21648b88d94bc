"""Power cuts under the lake: it is on an ext4 image, and a cut is a copy of the image's file (see test_power_cut.py).

The journal is trimmed behind the lake's position, so what that names must be there after a cut, whole.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.lake import manifest
from crossdock.lake.segments import look
from crossdock.lake.writer import Writer
from tests.lake.source import ListSource, rows_in, rows_of, story
from tests.support import volumes

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(
        MISSING is not None, reason=f"NO POWER CUTS OF THE LAKE WERE TESTED: {MISSING}; only test_syncs.py stands in"
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
    """After each segment the power is cut: the position that was told, and the lake as it is then."""
    lake = image.parent / "disk" / "lake"
    source = ListSource(story(100))
    writer = Writer(lake, source)
    try:
        for _ in writer.take(lambda: False):
            if writer.read % 8 == 0 or writer.read == len(source.batches):
                told = writer.publish().last
                copy = image.with_name("copy.img")
                volumes.cut(image, copy)
                with volumes.mounted(copy, image.with_name("after")) as after:
                    yield told, after / "lake"
    finally:
        writer.close()


def test_the_reported_position_survives_a_power_cut(image: Path) -> None:
    seen = 0
    for told, lake in cuts(image):
        done = manifest.read_done(lake)
        assert done is not None and done.last == told
        assert (look(lake).faults, look(lake).missing) == ([], [])
        assert rows_in(lake) == rows_of(story(100)[:told])
        seen += 1
    assert seen > 4


def test_a_lake_that_does_not_sync_loses(image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test above shows nothing."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    assert any((manifest.read_done(lake) or manifest.Done(1, "", 1, 0, 0)).last < told for told, lake in cuts(image))
