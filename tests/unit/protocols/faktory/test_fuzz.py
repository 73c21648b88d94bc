"""Any bytes in any chunks raise nothing, and every line gets one well-formed reply.

The dispatcher encodes each event as the journal does, so a value that could not be stored fails here, too.
"""

import json
from typing import NamedTuple

from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.support.chunks import cut, cuts, ends
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.faktory_lines import hellos, lines
from tests.support.json_spellings import arrays, objects, spellings
from tests.support.known_ids import known_ids
from tests.support.picture import picture
from tests.support.resp import body, replies

streams = st.lists(st.builds(bytes.__add__, lines, ends), max_size=12).map(b"".join)


class Heard(NamedTuple):
    requests: list[bytes]
    said: bytes
    is_closed: bool
    dispatcher: PlainDispatcher


def talk(chunks: list[bytes], *, identified: bool = True) -> Heard:
    with known_ids():
        return _talk(chunks, identified=identified)


def _talk(chunks: list[bytes], *, identified: bool) -> Heard:
    dispatcher = PlainDispatcher()
    protocol = ClockedFaktory(dispatcher, line_bytes=600)
    peer = worker(dispatcher, protocol, "w1") if identified else Conversation(dispatcher, protocol)
    requests: list[bytes] = []
    for chunk in chunks:
        requests += _received(peer, chunk)
    # Each FETCH may have waited for two seconds.
    for _ in range(len(requests)):
        dispatcher.advance(2.0)
        if not peer.is_closed:
            requests += _received(peer, b"")
    return Heard(requests, peer.take(), peer.is_closed, dispatcher)


def _received(peer: Conversation, chunk: bytes) -> list[bytes]:
    """Send bytes and return the requests that the session parsed."""
    if peer.is_closed:
        return []
    receive = peer.session.receive
    seen: list[bytes] = []

    def spy(data: bytes) -> list[bytes]:
        seen.extend(requests := receive(data))
        return requests

    peer.session.receive = spy
    peer.send(chunk)
    peer.session.receive = receive
    return seen


@given(streams, cuts)
@example(b"", [])
@example(b"FETCH q\nFETCH q\nEND\nFETCH q\n", [3])
@example(b"INFO\n" + b"x" * 602, [5])
@example(b'MUTATE {"cmd":"discard","target":"dead","filter":{"jids":["12345678","12345678"]}}\n', [])
def test_lines(stream: bytes, places: list[int]) -> None:
    whole = talk([stream])
    said = replies(whole.said)
    if not whole.is_closed:
        assert len(said) == stream.count(b"\n")
    chunked = talk(cut(stream, places))
    assert chunked[1:3] == whole[1:3]
    assert chunked.requests == whole.requests[: len(chunked.requests)]
    assert whole.is_closed or chunked.requests == whole.requests
    assert picture(chunked.dispatcher.state) == picture(whole.dispatcher.state)


@given(hellos | st.binary(max_size=30), ends, streams, cuts)
def test_from_the_first_byte(hello: bytes, end: bytes, stream: bytes, places: list[int]) -> None:
    stream = hello + end + stream
    whole, chunked = (talk(chunks, identified=False) for chunks in ([stream], cut(stream, places)))
    assert chunked[1:3] == whole[1:3]
    assert replies(whole.said)[0] == b'+HI {"v":2}\r\n'
    assert picture(chunked.dispatcher.state) == picture(whole.dispatcher.state)


@given(st.binary(max_size=200), cuts)
def test_random_bytes(stream: bytes, places: list[int]) -> None:
    for identified in (True, False):
        whole, chunked = (talk(chunks, identified=identified) for chunks in ([stream], cut(stream, places)))
        assert chunked[1:3] == whole[1:3]
        replies(whole.said)


@given(streams)
def test_acknowledged_changes_survive_a_restart(stream: bytes) -> None:
    """Replaying the stored events gives the state that answered."""
    dispatcher = talk([stream]).dispatcher
    again = dispatcher.restarted().state
    assert again.counters.epoch == dispatcher.state.counters.epoch + 1
    for counters in (again.counters, dispatcher.state.counters):
        counters.epoch = counters.first_token = 0
        counters.at = 0.0
    assert picture(again) == picture(dispatcher.state)


#: Fields of `custom` that the server reads and may refuse (faktory.md section 9).
ASKS = {"bid", "unique_for", "expires_at", "expires_in", "track"}


@given(arrays(spellings), objects(spellings), st.booleans())
def test_args_and_custom_come_back_byte_for_byte(args: str, custom: str, bulk: bool) -> None:
    told = json.loads(custom, parse_int=str, parse_float=str)
    assume(not ASKS & set(told))
    dispatcher = PlainDispatcher()
    peer = worker(dispatcher, ClockedFaktory(dispatcher))
    job = f'{{"jid":"12345678","custom":{custom},"jobtype":"T","args":{args}}}'
    assert peer.ask(f"PUSHB [{job}]" if bulk else f"PUSH {job}") == (b"$2\r\n{}\r\n" if bulk else b"+OK\r\n")
    shown = body(peer.ask("FETCH default"))
    assert shown.endswith(f'"args":{args}}}'.encode())
    expected = f'"custom":{custom},' if told else ""
    assert shown.startswith(b'{"retry":25,%b"jid":"12345678",' % expected.encode())
    assert json.loads(shown, parse_int=str)["args"] == json.loads(args, parse_int=str)
