"""Workq's framing: commands, errors, and the bytes that an error leaves in the stream (workq.md sections 1 and
4.1)."""

from itertools import pairwise
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.rejection_delay import Long
from crossdock.protocols.workq import codec as m
from crossdock.protocols.workq.codec import BLOCK_BYTES, BUDGET, Codec, WorkqRequest

ID = b"61a444a0-6128-41c0-8078-cc757d3bd2d8"
ADD = b"add %b ping 1000 60000 " % ID


def read(*chunks: bytes) -> tuple[list[WorkqRequest], bool]:
    """The parsed requests, and whether the stream was broken at its end."""
    codec = Codec()
    found = [request for chunk in chunks for request in codec.receive(chunk)]
    broken = found[-1:] == [None]
    return found[:-1] if broken else found, broken


def one(data: bytes) -> WorkqRequest:
    found, broken = read(data)
    assert not broken
    (request,) = found
    return request


class TestLines:
    @pytest.mark.parametrize("data", [b"\n", b"lease a 1\n", b"\r\n\n", ADD + b"4\n", b"\r\r\n\n", b"lease\r a 1\n"])
    def test_a_line_without_cr_closes_the_connection_without_a_reply(self, data: bytes) -> None:
        found, broken = read(data, b"inspect server\r\n")
        assert broken
        assert all(isinstance(each, bytes) for each in found)

    def test_commands_before_it_are_returned(self) -> None:
        assert read(b"inspect server\r\nfoo\n") == ([([b"inspect", b"server"], {}, b"")], True)

    @pytest.mark.parametrize("data", [b"\r\n", b" inspect server\r\n", b"INSPECT server\r\n", b"inspect\tserver\r\n",
                                      b"foo\r\n", b"-priority=1 add\r\n", b"\0\r\n", b"\xff\xfe\r\n"])  # fmt: skip
    def test_an_unknown_command_is_refused(self, data: bytes) -> None:
        assert one(data) == m.UNKNOWN_COMMAND

    def test_repeated_and_trailing_blanks_are_ignored(self) -> None:
        assert one(b"lease  a   b 5  \r\n") == ([b"lease", b"a", b"b", b"5"], {}, b"")

    def test_cr_and_lf_may_be_in_different_chunks(self) -> None:
        assert read(ADD + b"4\r", b"\npong\r", b"\n") == ([([*(ADD + b"4").split()], {}, b"pong")], False)


class TestFlags:
    @pytest.mark.parametrize(
        ("line", "words", "flags"),
        [
            (b"-a=1 q 5", [b"q", b"5"], {b"a": b"1"}),
            (b"q -a=1 5", [b"q", b"5"], {b"a": b"1"}),
            (b"q 5 -a=1=2", [b"q", b"5"], {b"a": b"1"}),
            (b"-priority -4", [b"-priority", b"-4"], {}),
            (b"a=1 q", [b"a=1", b"q"], {}),
            (b"q 5 --a=-1", [b"q", b"5"], {b"-a": b"-1"}),
        ],
    )
    def test_flags_may_be_anywhere_after_the_name(
        self, line: bytes, words: list[bytes], flags: dict[bytes, bytes]
    ) -> None:
        assert one(b"lease " + line + b"\r\n") == ([b"lease", *words], flags, b"")

    @pytest.mark.parametrize("flags", [b"-a=", b"-=3", b"-a==5", b"-=", b"-a=1 -a=1", b"-a=1 -b=2 -a=3"])
    @pytest.mark.parametrize("name", [b"foo", b"lease", b"add", b""])
    def test_invalid_flags_are_reported_before_an_unknown_name(self, name: bytes, flags: bytes) -> None:
        assert one(name + b" " + flags + b"\r\n") == m.INVALID_FLAGS


class TestCounts:
    @pytest.mark.parametrize(
        "line",
        [b"add", ADD, ADD + b"4 5", b"schedule a b 1 1 4", b"run a b 1 1", b"result a", b"result a 1 1", b"lease",
         b"lease a", b"complete a", b"complete a 1 2", b"fail a", b"delete", b"delete a b", b"inspect"],
    )  # fmt: skip
    def test_a_wrong_number_of_arguments_is_refused(self, line: bytes) -> None:
        assert one(line + b"\r\n") == m.INVALID_ARGS

    def test_flags_do_not_count_as_arguments(self) -> None:
        assert one(b"delete a -x=1 -y=2 -z=3 -w=4\r\n") == (
            [b"delete", b"a"],
            {b"x": b"1", b"y": b"2", b"z": b"3", b"w": b"4"},
            b"",
        )


SIZED = [
    (ADD, m.INVALID_PAYLOAD_SIZE),
    (b"schedule %b q 1 1 2026-01-01T00:00:00Z " % ID, m.INVALID_PAYLOAD_SIZE),
    (b"run %b q 1 1 " % ID, m.INVALID_PAYLOAD_SIZE),
    (b"complete %b " % ID, m.INVALID_PAYLOAD_SIZE),
    (b"fail %b " % ID, m.INVALID_RESULT_SIZE),
]


@pytest.mark.parametrize(("command", "wrong"), SIZED)
class TestBlocks:
    @pytest.mark.parametrize("size", [b"x", b"-1", b"1048577", b"1_0", b"++1", b"0x1", b"1.0", b"9" * 5_000, b"\xb2"])
    def test_a_wrong_size_leaves_the_block_in_the_stream(self, command: bytes, wrong: bytes, size: bytes) -> None:
        assert read(command + size + b"\r\nhi\r\n") == ([wrong, m.UNKNOWN_COMMAND], False)

    @pytest.mark.parametrize("size", [b"4", b"+4", b"004", b"0" * 5_000 + b"4"])
    def test_a_valid_size_is_accepted(self, command: bytes, wrong: bytes, size: bytes) -> None:
        request = one(command + size + b"\r\npong\r\n")
        assert type(request) is tuple and request[2] == b"pong"

    @pytest.mark.parametrize("block", [b"", b"\0\r\n\xff\n", b"\r\n" * 10, b"add\r\n"])
    def test_a_block_may_have_any_bytes(self, command: bytes, wrong: bytes, block: bytes) -> None:
        request = one(b"%b%d\r\n%b\r\n" % (command, len(block), block))
        assert type(request) is tuple and request[2] == block

    def test_zero_may_be_signed(self, command: bytes, wrong: bytes) -> None:
        request = one(command + b"-0\r\n\r\n")
        assert type(request) is tuple and request[2] == b""

    def test_a_size_that_is_one_byte_too_small(self, command: bytes, wrong: bytes) -> None:
        """A single LF is left over, which closes the connection."""
        assert read(command + b"3\r\npong\r\n") == ([wrong], True)

    def test_a_size_that_is_too_small(self, command: bytes, wrong: bytes) -> None:
        assert read(command + b"2\r\npong-pong\r\ninspect server\r\n") == (
            [wrong, m.UNKNOWN_COMMAND, ([b"inspect", b"server"], {}, b"")],
            False,
        )

    def test_a_size_that_is_too_large(self, command: bytes, wrong: bytes) -> None:
        """The block extends into the next command."""
        found, broken = read(command + b"6\r\npong\r\nlease a 1\r\n")
        assert found == [wrong, m.UNKNOWN_COMMAND]
        assert not broken


class TestBudget:
    def test_the_largest_block_is_accepted(self) -> None:
        block = bytes(BLOCK_BYTES)
        long = one(b"%b%d\r\n%b\r\n" % (ADD, len(block), block))
        assert isinstance(long, Long) and isinstance(long.request, tuple) and long.request[2] == block

    @pytest.mark.parametrize(("command", "said"), [(b"lease", m.INVALID_ARGS), (b"x", m.UNKNOWN_COMMAND)])
    def test_a_line_of_very_many_words_is_refused(self, command: bytes, said: bytes) -> None:
        long = one(command + b" a" * 400_000 + b" 1\r\n")
        assert isinstance(long, Long)
        assert long.request == said
        assert long.took == pytest.approx(0.008, rel=0.01)

    def test_the_maximum_number_of_words_is_accepted(self) -> None:
        names = [b"%0255d" % n for n in range(1_000)]
        long = one(b"lease  %b  1\r\n" % b"  ".join(names))
        assert isinstance(long, Long) and long.request == ([b"lease", *names, b"1"], {}, b"")

    def test_the_number_of_flags_is_limited(self) -> None:
        flags = [b"-f%d=1" % n for n in range(101)]
        assert one(b"delete %b %b\r\n" % (ID, b" ".join(flags[:100]))) == ([b"delete", ID], ANY, b"")
        assert one(b"delete %b %b\r\n" % (ID, b" ".join(flags))) == m.INVALID_FLAGS

    @pytest.mark.parametrize("chunk", [65_536, 10**7])
    def test_a_line_may_use_the_whole_budget(self, chunk: int) -> None:
        """Only the budget limits a line: one of a million bytes is a command."""
        for length, broken in ((BUDGET, False), (BUDGET + 1, True)):
            line = b"lease " + b"a" * (length - 10) + b" 1\r\n"
            assert len(line) == length
            found, ended = read(*(line[at : at + chunk] for at in range(0, len(line), chunk)))
            assert (len(found), ended) == (not broken, broken)

    @pytest.mark.parametrize("chunk", [65_536, 10**7])
    def test_a_line_that_never_ends_closes_the_connection(self, chunk: int) -> None:
        data = b"x" * (BUDGET + 1)
        assert read(*(data[at : at + chunk] for at in range(0, len(data), chunk))) == ([], True)

    def test_line_and_block_share_the_budget(self) -> None:
        room = BUDGET - BLOCK_BYTES - 2
        for length, broken in ((room, False), (room + 1, True)):
            line = b"complete %b %d\r\n" % (b"i" * (length - 19), BLOCK_BYTES)
            assert len(line) == length
            assert read(line)[1] is broken
            assert read(line + bytes(BLOCK_BYTES) + b"\r\n")[1] is broken

    def test_a_broken_stream_keeps_no_input(self) -> None:
        codec = Codec()
        codec.receive(b"x" * (BUDGET + 1))
        assert codec.receive(b"\r\ninspect server\r\n") == []
        assert not codec._kept


WORDS = st.sampled_from(
    [b"add", b"run", b"lease", b"complete", b"fail", b"result", b"inspect", b"server", ID, b"q", b"1", b"4", b"0",
     b"-1", b"+2", b"1048576", b"-a=1", b"-a=", b"-=", b"-priority=1", b" ", b"", b"\r\n", b"\r\n", b"\r\n", b"\n",
     b"\r", b"\0", b"pong\r\n", b"\xff"]
)  # fmt: skip
STREAMS = st.lists(WORDS | st.binary(max_size=6), max_size=30).map(b" ".join) | st.lists(
    st.tuples(st.sampled_from([command for command, _ in SIZED]), st.integers(-1, 8), st.binary(max_size=8)), max_size=6
).map(lambda parts: b"".join(b"%b%d\r\n%b\r\n" % part for part in parts))


@given(STREAMS, st.lists(st.integers(0, 300), max_size=8))
def test_chunks_do_not_change_the_result(data: bytes, cuts: list[int]) -> None:
    whole = read(data)
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert read(*(data[a:b] for a, b in pairwise(edges))) == whole
    assert read(*(data[at : at + 1] for at in range(len(data)))) == whole
