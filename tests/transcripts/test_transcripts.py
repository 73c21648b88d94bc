"""Every conversation in a door's folder, however its bytes arrive: whole, one by one, in pieces that begin anywhere."""

from collections import Counter
from pathlib import Path

import pytest

from tests.transcripts.cuts import play_byte_by_byte, play_cut_everywhere, play_whole

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*/*.txt"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")


def protocol(path: Path) -> str:
    """Resqu's conversations are with the Redis door."""
    return {"resqu": "redis"}.get(path.parent.name, path.parent.name)


@each_transcript
def test_whole(path: Path) -> None:
    play_whole(path, protocol(path))


@each_transcript
def test_byte_by_byte(path: Path) -> None:
    play_byte_by_byte(path, protocol(path))


@each_transcript
def test_cut_at_every_position(path: Path) -> None:
    play_cut_everywhere(path, protocol(path))


def test_there_are_transcripts() -> None:
    count = Counter(path.parent.name for path in TRANSCRIPTS)
    assert all(count[name] > 20 for name in ("faktory", "masenko", "redis", "workq"))
    assert count["resqu"] >= 8
