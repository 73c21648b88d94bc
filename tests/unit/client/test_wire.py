"""Replies from bytes in pieces of any size, and the handshake."""

import hashlib
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.client.errors import Broken, Refused, WrongPassword
from crossdock.client.wire import LINE_BYTES, NULL, OK, PLAIN, Identity, Parser, Reply, Wire

_text = st.binary(max_size=20).map(lambda text: text.replace(b"\r", b"").replace(b"\n", b""))
_replies = st.one_of(
    st.just(OK),
    st.just(NULL),
    st.builds(Reply, st.sampled_from("+-"), _text),
    st.builds(Reply, st.just("$"), st.binary(max_size=300)),
)


def written(reply: Reply) -> bytes:
    if reply.mark != "$":
        return reply.mark.encode() + (reply.body or b"") + b"\r\n"
    return b"$-1\r\n" if reply.body is None else b"$%d\r\n%b\r\n" % (len(reply.body), reply.body)


@given(st.lists(_replies, max_size=20), st.lists(st.integers(0, 400), max_size=20))
def test_any_chunking_gives_the_same_replies(replies: list[Reply], cuts: list[int]) -> None:
    stream = b"".join(map(written, replies))
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    parser = Parser()
    found = [reply for begin, end in pairwise(places) for reply in parser.feed(stream[begin:end])]
    assert found == replies
    assert parser.empty


def test_each_ok_is_the_same_object_so_that_it_is_recognized_quickly() -> None:
    assert all(reply is OK for reply in Parser().feed(b"+OK\r\n" * 3))
    parser = Parser()
    parser.feed(b"+O")
    assert parser.feed(b"K\r\n+OK\r\n")[0] is OK


@pytest.mark.parametrize(
    "data",
    [b"*1\r\n", b"$x\r\n", b"$-2\r\n", b"$9999999999999\r\n", b"$1\r\nabc\r\n", b"+" + b"x" * LINE_BYTES],
)
def test_what_is_no_reply_is_an_error(data: bytes) -> None:
    with pytest.raises(Broken):
        Parser().feed(data)


def shake_hands(wire: Wire, *pieces: bytes) -> bytes:
    return b"".join(map(wire.greet, pieces))


def hello(said: bytes) -> dict[str, object]:
    verb, _, body = said.partition(b" ")
    assert (verb, said[-2:]) == (b"HELLO", b"\r\n")
    found: dict[str, object] = json.loads(body)
    return found


ANNOUNCED = b'{"server":"crossdock","version":"1","extensions":["once"],"limits":{"line_bytes":1000,"fetch_many":7}}'


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_handshake_in_pieces_of_any_size(size: int) -> None:
    wire = Wire(Identity(where="here"))
    greeting, accepted = b'+HI {"v":2}\r\n', b"$%d\r\n%b\r\n" % (len(ANNOUNCED), ANNOUNCED)
    said = shake_hands(wire, *(greeting[at : at + size] for at in range(0, len(greeting), size)))
    assert hello(said) == {"v": 2, "extensions": 1}
    assert not wire.ready
    assert shake_hands(wire, *(accepted[at : at + size] for at in range(0, len(accepted), size))) == b""
    assert wire.ready
    assert (wire.features.once, wire.features.fetch_many, wire.features.complete) == (True, 7, False)
    assert wire.features.job_bytes < 1000


def test_a_server_that_says_ok_has_no_extensions() -> None:
    wire = Wire(Identity(where="here", wid="w1", hostname="h", labels=("python",)))
    said = hello(shake_hands(wire, b'+HI {"v":2}\r\n'))
    assert (said["wid"], said["hostname"], said["labels"]) == ("w1", "h", ["python"])
    wire.greet(b"+OK\r\n")
    assert wire.features is PLAIN


def test_the_password_is_hashed_and_shown_nowhere() -> None:
    identity = Identity(where="here", password="s3cret")
    said = hello(shake_hands(Wire(identity), b'+HI {"v":2,"i":3,"s":"salt"}\r\n'))
    digest = b"s3cretsalt"
    for _ in range(3):
        digest = hashlib.sha256(digest).digest()
    assert said["pwdhash"] == digest.hex()
    assert "s3cret" not in repr(identity)


@pytest.mark.parametrize(
    ("pieces", "kind", "text"),
    [
        ([b'+HI {"v":2,"i":3,"s":"salt"}\r\n'], WrongPassword, "here requires a password"),
        ([b'+HI {"v":2}\r\n', b"-ERR Invalid password\r\n"], WrongPassword, "wrong password for here"),
        ([b'+HI {"v":2}\r\n', b"-ERR wid is too long\r\n"], Refused, "wid is too long"),
        ([b'+HI {"v":2}\r\n', b"$1\r\nx\r\n"], Broken, "extensions that this client cannot read"),
        ([b'+HI {"v":2}\r\n', b"+WHAT\r\n"], Broken, "does not speak the Faktory protocol"),
        ([b"-ERR unknown\r\n"], Broken, "does not speak the Faktory protocol; check host and port"),
        ([b"+HI x\r\n"], Broken, "does not speak the Faktory protocol"),
        ([b"HTTP/1.1 400 Bad Request\r\n"], Broken, "unexpected reply"),
    ],
)
def test_a_handshake_that_fails(pieces: list[bytes], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        shake_hands(Wire(Identity(where="here")), *pieces)


def test_a_hash_of_too_many_rounds_is_not_computed() -> None:
    with pytest.raises(Broken, match="rounds"):
        shake_hands(Wire(Identity(where="here", password="x")), b'+HI {"v":2,"i":99999999999,"s":"salt"}\r\n')
