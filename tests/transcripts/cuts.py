"""However the bytes of a conversation arrive: whole, one by one, and cut in two anywhere."""

from collections.abc import Iterator
from pathlib import Path

from tests.transcripts.script import read
from tests.transcripts.stage import Stage


def _whole(data: bytes) -> Iterator[bytes]:
    yield data


def _one_by_one(data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        yield data[i : i + 1]


def play_whole(path: Path, door: str) -> None:
    Stage(_whole, door).play(read(path))


def play_byte_by_byte(path: Path, door: str) -> None:
    Stage(_one_by_one, door).play(read(path))


def play_cut_everywhere(path: Path, door: str) -> None:
    """All that is sent in a row is cut at its first byte, then all at its second, up to the end of the longest."""
    steps, position, longest = read(path), 0, 0

    def cut(data: bytes) -> Iterator[bytes]:
        nonlocal longest
        longest = max(longest, len(data))
        if position <= len(data):
            yield data[:position]
            yield data[position:]
        else:
            yield data

    while position <= longest:
        Stage(cut, door).play(steps)
        position += 1
