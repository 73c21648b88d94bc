"""Plays every transcript of a protocol's folder with its bytes whole, one by one, and cut at every position."""

from collections import Counter
from pathlib import Path

import pytest

from tests.transcripts.cuts import play_byte_by_byte, play_cut_everywhere, play_whole

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*/*.txt"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")


def protocol(path: Path) -> str:
    """Resqu's transcripts use the Redis protocol."""
    return {"resqu": "redis"}.get(path.parent.name, path.parent.name)


@each_transcript
def test_transcript_with_whole_input(path: Path) -> None:
    play_whole(path, protocol(path))


@each_transcript
def test_transcript_byte_by_byte(path: Path) -> None:
    play_byte_by_byte(path, protocol(path))


@each_transcript
def test_transcript_cut_at_every_position(path: Path) -> None:
    play_cut_everywhere(path, protocol(path))


def test_transcripts_exist() -> None:
    count = Counter(path.parent.name for path in TRANSCRIPTS)
    assert all(count[name] > 20 for name in ("faktory", "masenko", "redis", "workq"))
    assert count["resqu"] >= 8
