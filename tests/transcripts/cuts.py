"""However the bytes of a conversation arrive: whole, one by one, and cut in two anywhere."""

from collections.abc import Iterator
from pathlib import Path

from tests.transcripts.script import client_bytes, read
from tests.transcripts.stage import Stage


def _whole(_: int, data: bytes) -> Iterator[bytes]:
    yield data


def _one_by_one(_: int, data: bytes) -> Iterator[bytes]:
    for i in range(len(data)):
        yield data[i : i + 1]


def play_whole(path: Path, door: str) -> None:
    Stage(_whole, door).play(read(path))


def play_byte_by_byte(path: Path, door: str) -> None:
    Stage(_one_by_one, door).play(read(path))


def play_cut_everywhere(path: Path, door: str) -> None:
    steps = read(path)
    for position in range(client_bytes(steps) + 1):

        def cut_here(at: int, data: bytes, position: int = position) -> Iterator[bytes]:
            cut = position - at
            if 0 <= cut <= len(data):
                yield data[:cut]
                yield data[cut:]
            else:
                yield data

        Stage(cut_here, door).play(steps)
