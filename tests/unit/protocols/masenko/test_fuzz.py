"""Any bytes in any chunks raise nothing, and every line gets one well-formed reply in order.

The dispatcher encodes each event as the journal does, so a value that could not be stored fails here, too.
"""

import json
from itertools import count
from typing import NamedTuple
from unittest.mock import patch
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from crossdock.protocols.masenko.protocol import MasenkoProtocol
from tests.support.chunks import cut, cuts, ends
from tests.support.dispatcher import PlainDispatcher
from tests.support.masenko_lines import lines
from tests.support.masenko_peer import MasenkoPeer
from tests.support.picture import picture

streams = st.lists(st.builds(bytes.__add__, lines, ends), max_size=12).map(b"".join)


class Heard(NamedTuple):
    said: bytes
    is_closed: bool
    dispatcher: PlainDispatcher


def talk(chunks: list[bytes]) -> Heard:
    jids = count(1)
    with patch("crossdock.protocols.masenko.push.new_jid", lambda: str(UUID(int=next(jids)))):
        dispatcher = PlainDispatcher()
        peer = MasenkoPeer(dispatcher, MasenkoProtocol(line_bytes=600))
        for chunk in chunks:
            peer.send(chunk)
        # Each FETCH may have waited. Requests that are handled after it do not count as idle time.
        for _ in range(sum(map(len, chunks))):
            if not peer.is_waiting:
                break
            dispatcher.advance(peer.until - dispatcher.now.steady)
        return Heard(peer.take(), peer.is_closed, dispatcher)


def replies(said: bytes) -> list[bytes]:
    assert not said or said.endswith(b"\n")
    found = said.split(b"\n")[:-1]
    for line in found:
        verb, _, body = line.partition(b" ")
        assert verb in (b"OK", b"PONG", b"EMPTY", b"ERR"), line
        assert isinstance(json.loads(body), dict)
        assert not set(line) & set(b"<>&\r\t")
    return found


@given(streams, cuts)
@example(b"", [])
@example(b"FETCH\nATOMIC\nPUSH {}\nDONE\nQUIT\nPING\n", [3])
@example(b"INFO\n" + b"x" * 602, [5])
@example(b'PUSH {"name":"a","retry":0,"deadqueue":"q"}\nFETCH\nNACK {"id":1}\nINFO\n', [])
@example(b'ATOMIC\nPUSH {"name":"a"}\nPUSH {"name":"b","blocked_by":[-1,1]}\nDONE\nFETCH\nACK {"id":1}\n', [9])
def test_lines(stream: bytes, places: list[int]) -> None:
    whole = talk([stream])
    said = replies(whole.said)
    if not whole.is_closed:
        assert len(said) <= stream.count(b"\n")
        if b"ATOMIC" not in stream.upper():
            assert len(said) == stream.count(b"\n")
    chunked = talk(cut(stream, places))
    assert chunked[:2] == whole[:2]
    assert picture(chunked.dispatcher.state) == picture(whole.dispatcher.state)


@given(st.binary(max_size=200), cuts)
def test_random_bytes(stream: bytes, places: list[int]) -> None:
    whole, chunked = talk([stream]), talk(cut(stream, places))
    assert chunked[:2] == whole[:2]
    replies(whole.said)


@given(streams)
def test_acknowledged_changes_survive_a_restart(stream: bytes) -> None:
    """Replaying the stored events gives the state that answered, except for the leases, which are given back."""
    dispatcher = talk([stream]).dispatcher
    again = dispatcher.restarted().state
    assert sorted(again.jobs) == sorted(dispatcher.state.jobs)
    assert again.counters.number == dispatcher.state.counters.number
    for number, job in again.jobs.items():
        before = dispatcher.state.jobs[number]
        assert (job.kind, job.queue, job.payload, job.failures, job.due) == (
            before.kind,
            before.queue,
            before.payload,
            before.failures,
            before.due,
        )
        assert job.lease is None
