"""Every conversation in a door's folder, however its bytes arrive: whole, one by one, and cut in two anywhere."""

from collections import Counter
from pathlib import Path

import pytest

from tests.transcripts.cuts import play_byte_by_byte, play_cut_everywhere, play_whole

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*/*.txt"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")


@each_transcript
def test_whole(path: Path) -> None:
    play_whole(path, path.parent.name)


@each_transcript
def test_byte_by_byte(path: Path) -> None:
    play_byte_by_byte(path, path.parent.name)


@each_transcript
def test_cut_in_two_at_every_position(path: Path) -> None:
    play_cut_everywhere(path, path.parent.name)


def test_there_are_transcripts() -> None:
    count = Counter(path.parent.name for path in TRANSCRIPTS)
    assert all(count[door] > 20 for door in ("faktory", "masenko", "redis", "workq"))
