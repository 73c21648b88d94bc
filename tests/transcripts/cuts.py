"""Plays a conversation with its bytes in different chunks: whole, one by one, and cut at every position."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.transcripts.script import read
from tests.transcripts.stage import Stage

PIECE: Final = 64


def _whole(data: bytes) -> Iterator[bytes]:
    yield data


def _one_by_one(data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        yield data[i : i + 1]


def play_whole(path: Path, protocol: str) -> None:
    Stage(_whole, protocol).play(read(path))


def play_byte_by_byte(path: Path, protocol: str) -> None:
    Stage(_one_by_one, protocol).play(read(path))


def play_cut_everywhere(path: Path, protocol: str) -> None:
    """Send pieces of a fixed length: first cut at bytes 0, 64, 128 … of the data, then at 1, 65, 129 …"""
    steps = read(path)
    for first in range(PIECE):

        def cut(data: bytes, first: int = first) -> Iterator[bytes]:
            yield data[:first]
            for at in range(first, len(data), PIECE):
                yield data[at : at + PIECE]

        Stage(cut, protocol).play(steps)
