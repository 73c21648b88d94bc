"""Every conversation in resqu/*.txt, however its bytes arrive: whole, one by one, and cut in two anywhere."""

from pathlib import Path

import pytest

from tests.transcripts.cuts import play_byte_by_byte, play_cut_everywhere, play_whole

DOOR = "redis"
TRANSCRIPTS = sorted((Path(__file__).parent / "resqu").glob("*.txt"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)


@each_transcript
def test_whole(path: Path) -> None:
    play_whole(path, DOOR)


@each_transcript
def test_byte_by_byte(path: Path) -> None:
    play_byte_by_byte(path, DOOR)


@each_transcript
def test_cut_in_two_at_every_position(path: Path) -> None:
    play_cut_everywhere(path, DOOR)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 8
