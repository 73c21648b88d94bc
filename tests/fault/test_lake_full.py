"""The disk of the lake is full, at any moment: nothing is lost, and the exporter continues when there is room."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossdock.lake.location import read_position
from crossdock.lake.writer import Writer
from crossdock.model.errors import CrossdockError
from tests.lake.source import SERVER, ListSource, rows_in, rows_of, story
from tests.support import volumes

MISSING = volumes.missing()
pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(MISSING is not None, reason=f"NO FULL DISK OF THE LAKE WAS TESTED: {MISSING}"),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "disk.img"
    volumes.make_ext4(image, 24)
    with volumes.mounted(image, tmp_path / "disk") as mounted:
        yield mounted


def write(data: Path, lake: Path, entries: list[bytes]) -> None:
    found = read_position(data, lake)
    writer = Writer(lake, data, ListSource(entries, trimmed=max(0, (found.last if found else 0) - 1)), server=SERVER)
    try:
        while writer.read < len(entries):
            until = writer.read + 50
            for _ in writer.take(lambda until=until: writer.read >= until):  # type: ignore[misc]
                pass
            writer.publish()
    finally:
        writer.close()


@pytest.mark.parametrize("room", [0, 4, 16, 40, 64, 100])
def test_a_full_disk_stops_the_writer_and_loses_nothing(disk: Path, tmp_path: Path, room: int) -> None:
    """`room`: KiB that are left. The drafts are on another disk, so that the segment or the commit fails."""
    data, lake, entries = tmp_path / "data", disk / "lake", story()
    write(data, lake, entries[:100])
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass
        size = file.tell()
        file.truncate(max(0, size - room * 1024))
    with pytest.raises((CrossdockError, OSError)):
        write(data, lake, entries)
    found = read_position(data, lake)
    assert found is not None and 100 <= found.last < len(entries)
    ballast.unlink()
    write(data, lake, entries)
    assert rows_in(lake) == rows_of(entries)
