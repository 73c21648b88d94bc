"""RESP: requests in chunks of any size, protocol errors with Redis' texts, and replies in RESP2 and RESP3."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols.redis.resp import decode
from crossdock.protocols.redis.resp.decode import ProtocolError, Requests, RespRequest, integer, split
from crossdock.protocols.redis.resp.encode import encode
from crossdock.protocols.redis.resp.values import NULL_ARRAY, Error, Push, Replies, Simple, Value, Verbatim
from crossdock.protocols.rejection_delay import Long

LIMIT = 5_000


def array(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def read(*chunks: bytes, authenticated: bool = True) -> list[RespRequest]:
    requests = Requests(LIMIT, authenticated)
    return [request for chunk in chunks for request in requests.receive(chunk)]


def fault(data: bytes, *, authenticated: bool = True) -> str:
    """The protocol error at the end of the input. Bytes after it are not read."""
    requests = Requests(LIMIT, authenticated)
    last = requests.receive(data)[-1]
    assert isinstance(last, ProtocolError)
    assert requests.failed
    assert requests.receive(array(b"PING")) == []
    assert last.text.startswith("Protocol error: ")
    return last.text.removeprefix("Protocol error: ")


@given(st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=70), max_size=5), st.data())
def test_requests_are_parsed_the_same_from_any_chunks(requests: list[list[bytes]], data: st.DataObject) -> None:
    wire = b"".join(array(*words) for words in requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=4)))
    chunks = [wire[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert read(*chunks) == requests
    assert read(*(wire[i : i + 1] for i in range(len(wire)))) == requests


_PIECES = st.sampled_from([*b"*1\r\n *2\r\n *-1\r\n $4\r\n PING\r\n $0\r\n\r\n * $ \r \n \" ' \\x".split(b" ")])


@given(st.lists(_PIECES | st.binary(max_size=6), max_size=12), st.booleans())
def test_garbage_is_parsed_the_same_from_any_chunks(pieces: list[bytes], authenticated: bool) -> None:
    wire = b"".join(pieces)
    whole = read(wire, authenticated=authenticated)
    assert read(*(wire[i : i + 1] for i in range(len(wire))), authenticated=authenticated) == whole
    assert read(*pieces, authenticated=authenticated) == whole


@given(st.binary(max_size=60))
def test_an_inline_request_raises_only_protocol_errors(line: bytes) -> None:
    for request in read(line + b"\n"):
        assert isinstance(request, ProtocolError) or request


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*x\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*01\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n\xff\r\n", "expected '$', got 'ÿ'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$ 4\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$5001\r\n", "invalid bulk length"),
        (b"*2\r\n$3000\r\n" + b"a" * 3_000 + b"\r\n$3000\r\n" + b"a" * 3_000 + b"\r\n", "too big request"),
        (b"*" + b"1" * decode.LINE_BYTES, "too big mbulk count string"),
        (b"*1\r\n$" + b"1" * decode.LINE_BYTES, "too big bulk count string"),
        (b"a" * (decode.LINE_BYTES + 1), "too big inline request"),
        (b"a" * (decode.LINE_BYTES + 1) + b"\n", "too big inline request"),
        (b'set "a\n', "unbalanced quotes in request"),
        (b'set "a"b\n', "unbalanced quotes in request"),
        (b"set 'a\n", "unbalanced quotes in request"),
    ],
)
def test_malformed_requests_have_the_error_texts_of_redis(data: bytes, text: str) -> None:
    assert fault(data) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"*11\r\n", "unauthenticated multibulk length"),
        (b"*1\r\n$8193\r\n", "unauthenticated bulk length"),
        (b"a" * 8_193, "too big inline request"),
        (b"*" + b"1" * 8_193, "too big mbulk count string"),
    ],
)
def test_limits_are_lower_before_authentication(data: bytes, text: str) -> None:
    requests = Requests(16 * 1024 * 1024, authenticated=False)
    assert requests.receive(data) == [ProtocolError(f"Protocol error: {text}")]
    requests = Requests(16 * 1024 * 1024)
    assert requests.receive(data) == []


def test_complete_requests_before_a_protocol_error_are_returned() -> None:
    assert read(array(b"PING") + b"*x\r\n" + array(b"PING")) == [
        [b"PING"],
        ProtocolError("Protocol error: invalid multibulk length"),
    ]


def test_empty_requests_are_skipped() -> None:
    assert read(b"*0\r\n*-1\r\n\r\n  \r\n\n" + array(b"PING") + b"*-9\r\n") == [[b"PING"]]


def test_a_string_may_contain_any_bytes_and_its_line_end_is_not_checked() -> None:
    """As in Redis, the length counts and the two bytes after the string are skipped."""
    assert read(b"*2\r\n$3\r\n\r\n*XX$0\r\n\r\n") == [[b"\r\n*", b""]]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"PING", [b"PING"]),
        (b"  set\ta  b ", [b"set", b"a", b"b"]),
        (b'set "a b" "\\x00\\xFf\\n\\r\\t\\b\\a\\\\\\"\\q"', [b"set", b"a b", b'\x00\xff\n\r\t\b\a\\"q']),
        (b"set 'it\\'s' '\\n'", [b"set", b"it's", b"\\n"]),
        (b'set "" x"y" ', [b"set", b"", b"xy"]),
        (b'set "\\xg0"', [b"set", b"xg0"]),
    ],
)
def test_inline_requests_are_split_into_arguments(line: bytes, words: list[bytes]) -> None:
    assert split(line) == words
    assert read(line + b"\r\n") == [words]


def test_a_large_string_in_small_chunks_is_parsed_once() -> None:
    requests = Requests(16 * 1024 * 1024)
    body = b"x" * 4_000_000
    wire = array(b"SET", b"k", body)
    [found] = [each for i in range(0, len(wire), 1_000) for each in requests.receive(wire[i : i + 1_000])]
    assert isinstance(found, Long)
    assert found.request == [b"SET", b"k", body]


@pytest.mark.parametrize("text", [b"", b"-", b"+1", b" 1", b"1 ", b"01", b"-0", b"1_0", b"1.0", b"9223372036854775808"])
def test_other_forms_of_integers_are_refused(text: bytes) -> None:
    assert integer(text) is None


@pytest.mark.parametrize("value", [0, -1, 12, 2**63 - 1, -(2**63)])
def test_64_bit_integers_are_parsed(value: int) -> None:
    assert integer(b"%d" % value) == value


REPLIES: list[tuple[Value, bytes, bytes]] = [
    (b"a\r\n", b"$3\r\na\r\n\r\n", b"$3\r\na\r\n\r\n"),
    (b"", b"$0\r\n\r\n", b"$0\r\n\r\n"),
    (-5, b":-5\r\n", b":-5\r\n"),
    (None, b"$-1\r\n", b"_\r\n"),
    (NULL_ARRAY, b"*-1\r\n", b"_\r\n"),
    (True, b":1\r\n", b"#t\r\n"),
    (False, b":0\r\n", b"#f\r\n"),
    (1.5, b"$3\r\n1.5\r\n", b",1.5\r\n"),
    (3.0, b"$1\r\n3\r\n", b",3\r\n"),
    (-0.1, b"$20\r\n-0.10000000000000001\r\n", b",-0.10000000000000001\r\n"),
    (1e300, b"$23\r\n1.0000000000000001e+300\r\n", b",1.0000000000000001e+300\r\n"),
    (math.inf, b"$3\r\ninf\r\n", b",inf\r\n"),
    (-math.inf, b"$4\r\n-inf\r\n", b",-inf\r\n"),
    (Simple(b"OK"), b"+OK\r\n", b"+OK\r\n"),
    (Error("ERR a\r\nb"), b"-ERR a  b\r\n", b"-ERR a  b\r\n"),
    (Verbatim(b"a:1"), b"$3\r\na:1\r\n", b"=7\r\ntxt:a:1\r\n"),
    ([], b"*0\r\n", b"*0\r\n"),
    ([b"a", 1, [None]], b"*3\r\n$1\r\na\r\n:1\r\n*1\r\n$-1\r\n", b"*3\r\n$1\r\na\r\n:1\r\n*1\r\n_\r\n"),
    ((Error("ERR x"), Simple(b"y")), b"*2\r\n-ERR x\r\n+y\r\n", b"*2\r\n-ERR x\r\n+y\r\n"),
    ({b"a": 1, b"b": []}, b"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n", b"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*0\r\n"),
    ({b"a"}, b"*1\r\n$1\r\na\r\n", b"~1\r\n$1\r\na\r\n"),
    ({b"a": None}.keys(), b"*1\r\n$1\r\na\r\n", b"~1\r\n$1\r\na\r\n"),
    (Push((b"a", b"c")), b"*2\r\n$1\r\na\r\n$1\r\nc\r\n", b">2\r\n$1\r\na\r\n$1\r\nc\r\n"),
    (Replies((1, Push((2,)))), b":1\r\n*1\r\n:2\r\n", b":1\r\n>1\r\n:2\r\n"),
]


@pytest.mark.parametrize(("value", "resp2", "resp3"), REPLIES, ids=lambda each: repr(each)[:20])
def test_values_are_encoded_in_resp2_and_resp3(value: Value, resp2: bytes, resp3: bytes) -> None:
    assert encode(value, False) == resp2
    assert encode(value, True) == resp3
    assert encode([value], False) == b"*1\r\n" + resp2


@given(st.floats(allow_nan=False))
def test_a_double_survives_encoding(value: float) -> None:
    text = encode(value, True)
    assert float(text[1:-2]) == value


def test_encoding_an_unknown_type_raises() -> None:
    wrong: Any = "text"
    with pytest.raises(KeyError):
        encode(wrong, True)
