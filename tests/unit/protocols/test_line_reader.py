"""Splitting a stream into lines does not depend on the chunks, and a line has a limit."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.line_reader import Gathered, Lines

LIMIT, FIRST = 8, 4

#: Parts of lines: many line ends and CRs, and sometimes a line that is too long.
streams = st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b"defg", b"\0\xff"]), max_size=40).map(b"".join)


def reference(stream: bytes) -> tuple[list[bytes], bool]:
    """The expected result of `Lines`: the lines, and whether one was too long."""
    lines: list[bytes] = []
    *whole, rest = stream.split(b"\n")
    for raw in whole:
        line = raw.removesuffix(b"\r")
        if len(line) > (LIMIT if lines else FIRST):
            return lines, True
        lines.append(line)
    # An incomplete line may have one more byte: a CR, which does not count.
    return lines, len(rest) > (LIMIT if lines else FIRST) + 1


def fed(*chunks: bytes) -> tuple[list[bytes], bool]:
    lines = Lines(LIMIT, first=FIRST)
    return [line for chunk in chunks for line in lines.receive(chunk)], lines.overrun


@given(streams)
def test_whole(stream: bytes) -> None:
    assert fed(stream) == reference(stream)


@given(streams)
def test_byte_by_byte(stream: bytes) -> None:
    assert fed(*(stream[i : i + 1] for i in range(len(stream)))) == reference(stream)


@given(streams, st.lists(st.integers(0, 80)))
def test_any_chunks(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert fed(*(stream[a:b] for a, b in pairwise(places))) == reference(stream)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunked", [False, True])
def test_the_limit_counts_neither_cr_nor_lf(end: bytes, chunked: bool) -> None:
    def receive(lines: Lines, data: bytes) -> list[bytes]:
        chunks = [data[i : i + 1] for i in range(len(data))] if chunked else [data]
        return [line for chunk in chunks for line in lines.receive(chunk)]

    just = Lines(LIMIT)
    assert receive(just, b"a" * LIMIT + end) == [b"a" * LIMIT]
    assert not just.overrun
    over = Lines(LIMIT)
    assert receive(over, b"a" * (LIMIT + 1) + end) == []
    assert over.overrun


def test_after_a_line_that_is_too_long_no_more_lines_are_returned() -> None:
    lines = Lines(LIMIT)
    assert lines.receive(b"ok\n" + b"a" * 10) == [b"ok"]
    assert lines.overrun
    assert lines.receive(b"\nmore\n") == []


def test_an_empty_chunk_is_no_line() -> None:
    lines = Lines(LIMIT)
    assert lines.receive(b"") == []
    assert lines.receive(b"a") == []
    assert lines.receive(b"") == []
    assert lines.receive(b"\n") == [b"a"]


def test_the_first_line_has_its_own_limit() -> None:
    assert Lines(LIMIT, first=FIRST).receive(b"abcd\nabcdefgh\n") == [b"abcd", b"abcdefgh"]
    assert Lines(LIMIT, first=FIRST).receive(b"abcde\nabcdefgh\n") == []
    assert Lines(FIRST, first=LIMIT).receive(b"abcdefgh\nabcde\n") == [b"abcdefgh"]


def test_small_chunks_are_joined() -> None:
    gathered = Gathered()
    for _ in range(10_000):
        gathered.add(b"ab")
    assert gathered.size == 20_000
    assert len(gathered._pieces) == 1
    assert gathered.take() == b"ab" * 10_000
    assert gathered.size == 0
    assert gathered.take() == b""


def test_large_chunks_are_not_moved() -> None:
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
