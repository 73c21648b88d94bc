"""Pieces of a request: all of it, in order, in few objects."""

from crossdock.protocols.line_reader import Gathered


def test_small_pieces_are_put_together() -> None:
    gathered = Gathered()
    for _ in range(10_000):
        gathered.add(b"ab")
    assert gathered.size == 20_000
    assert len(gathered._pieces) == 1
    assert gathered.take() == b"ab" * 10_000
    assert gathered.size == 0
    assert gathered.take() == b""


def test_large_ones_are_not_moved() -> None:
    gathered = Gathered()
    for number in range(64):
        gathered.add(b"%c" % (65 + number % 26) * 256_000)
    first = gathered._pieces[0]
    gathered.add(b"")
    gathered.add(b"\r")
    assert len(gathered._pieces) == 65
    assert gathered._pieces[0] is first
    whole = gathered.take(without=b"\r")
    assert len(whole) == 64 * 256_000
    assert whole[:256_001] == b"A" * 256_000 + b"B"
