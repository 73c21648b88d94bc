"""Every conversation in faktory/*.txt, however its bytes arrive: whole, one by one, and cut in two anywhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transcripts.script import client_bytes, read
from tests.transcripts.stage import Stage

TRANSCRIPTS = sorted((Path(__file__).parent / "faktory").glob("*.txt"))

each_transcript = pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)


def whole(_: int, data: bytes) -> Iterator[bytes]:
    yield data


def one_by_one(_: int, data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        yield data[i : i + 1]


@each_transcript
def test_whole(path: Path) -> None:
    Stage(whole).play(read(path))


@each_transcript
def test_byte_by_byte(path: Path) -> None:
    Stage(one_by_one).play(read(path))


@each_transcript
def test_cut_in_two_at_every_position(path: Path) -> None:
    steps = read(path)
    for position in range(client_bytes(steps) + 1):

        def cut_here(at: int, data: bytes, position: int = position) -> Iterator[bytes]:
            cut = position - at
            if 0 <= cut <= len(data):
                yield data[:cut]
                yield data[cut:]
            else:
                yield data

        Stage(cut_here).play(steps)


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 20
