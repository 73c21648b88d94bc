"""Faktory's limits on names, lists and lines (model.md section 12)."""

import json
import weakref

import msgspec
import pytest

from crossdock.model.clock import Now
from crossdock.protocols.faktory.admin import QUEUES_AT_MOST
from crossdock.protocols.faktory.job import PushBody, spec
from crossdock.protocols.faktory.session import BEFORE_HELLO, OTHERS_BYTES, SMALL_BYTES
from crossdock.protocols.job_spec import InvalidJob
from tests.support.conversation import ClockedFaktory, Conversation, say, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"


class Name(str):
    """A text that shows whether it is still referenced."""

    __slots__ = ("__weakref__",)


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> Conversation:
    return worker(dispatcher, protocol, "w")


@pytest.mark.parametrize("field", ["jid", "jobtype", "queue"])
@pytest.mark.parametrize(("length", "taken"), [(255, True), (256, False), (1_000_000, False)])
def test_the_length_of_names_is_limited(
    dispatcher: PlainDispatcher, peer: Conversation, field: str, length: int, taken: bool
) -> None:
    job = {"jid": "12345678", "jobtype": "T", "args": [], field: "x" * length}
    said = say(peer, b"PUSH " + json.dumps(job).encode())
    assert (said == OK) is taken
    assert taken or b"must not be longer than 255 bytes" in said
    assert len(dispatcher.state.jobs) == taken


def test_long_names_are_not_remembered() -> None:
    """Caching ten thousand refused names would take gigabytes."""
    kept: list[weakref.ref[Name]] = []
    body = PushBody(jid="12345678", jobtype="T", args=msgspec.Raw(b"[]"), queue="x")
    for field in ("jobtype", "queue"):
        name = Name("x" * 100_000)
        kept.append(weakref.ref(name))
        with pytest.raises(InvalidJob):
            spec(msgspec.structs.replace(body, **{field: name}), Now(1.0, 1.0))
        del name
    assert [each() for each in kept] == [None, None]


def test_names_are_measured_in_bytes(peer: Conversation) -> None:
    short = 'PUSH {"jid":"äää","jobtype":"T","args":[]}'.encode()
    assert say(peer, short).startswith(b"-ERR jobs must have a reasonable jid")
    for name, taken in (("ä" * 127, True), ("ä" * 128, False)):
        assert (say(peer, f'PUSH {{"jid":"{name}","jobtype":"{name}","args":[]}}'.encode()) == OK) is taken


@pytest.mark.parametrize(("verb", "most"), [(b"ACK", SMALL_BYTES), (b"BEAT", SMALL_BYTES), (b"FAIL", OTHERS_BYTES)])
def test_megabytes_of_keys_are_read_before_they_are_refused(
    dispatcher: PlainDispatcher, peer: Conversation, verb: bytes, most: int
) -> None:
    assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[]}') == OK
    say(peer, b"FETCH default")
    text = b'{"jid":"12345678","wid":"w","k":"%b"}'
    longest = text % (b"x" * (most - len(text) + 2))
    assert say(peer, verb + b" " + longest + b" ") == b"-ERR %b takes at most %d bytes\r\n" % (verb, most)
    dispatcher.advance(1)  # the error is delayed
    assert say(peer, verb + b" " + longest) == OK


class TestManyNames:
    def test_fetch(self, peer: Conversation) -> None:
        assert say(peer, b'PUSH {"jid":"12345678","jobtype":"T","args":[]}') == OK
        assert say(peer, b"FETCH" + b" x" * QUEUES_AT_MOST + b" default").startswith(b"-ERR FETCH takes at most ")
        assert body(say(peer, b"FETCH" + b" x" * (QUEUES_AT_MOST - 1) + b" default"))

    @pytest.mark.parametrize("verb", [b"PAUSE", b"RESUME", b"REMOVE", b"LATENCY"])
    def test_queue(self, peer: Conversation, verb: bytes) -> None:
        assert say(peer, b"QUEUE " + verb + b" x" * (QUEUES_AT_MOST + 1)).startswith(b"-ERR QUEUE takes at most ")
        assert say(peer, b"QUEUE " + verb + b" x" * QUEUES_AT_MOST)[:1] in b"+$"

    def test_a_name_of_a_megabyte(self, dispatcher: PlainDispatcher, peer: Conversation) -> None:
        peer.send(b"FETCH " + b"x" * 1_000_000 + b"\r\n")
        dispatcher.advance(2)
        assert peer.take() == b"$-1\r\n"
        assert say(peer, b"x" * 1_000_000).startswith(b"-ERR unknown command xxx")


class TestBeforeHello:
    """A line before HELLO may have 8 KiB, later lines the usual limit (model.md section 12)."""

    def hello(self, length: int) -> bytes:
        line = b'HELLO {"v":2,"hostname":"%b"}'
        return line % (b"h" * (length - len(line) + 2))

    @pytest.mark.parametrize("chunk", [1, 1_000, 1_000_000])
    def test_a_long_hello(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory, chunk: int) -> None:
        for length, taken in ((BEFORE_HELLO, True), (BEFORE_HELLO + 1, False)):
            peer = Conversation(dispatcher, protocol)
            peer.take()
            line = self.hello(length) + b"\r\n"
            for i in range(0, len(line), chunk):
                peer.send(line[i : i + chunk])
            assert peer.take() == (OK if taken else b"")
            assert peer.is_closed is not taken

    @pytest.mark.parametrize("chunk", [1, 1_000, 1_000_000])
    def test_a_long_line_in_the_same_chunk_as_hello(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory, chunk: int
    ) -> None:
        peer = Conversation(dispatcher, protocol)
        peer.take()
        push = b'PUSH {"jid":"12345678","jobtype":"T","args":["%b"]}' % (b"x" * 2 * BEFORE_HELLO)
        line = b'HELLO {"v":2}\r\n' + push + b"\r\n"
        for i in range(0, len(line), chunk):
            peer.send(line[i : i + chunk])
        assert peer.take() == OK + OK
