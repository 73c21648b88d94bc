"""IDs, leases and limits of a Masenko session, and odd payloads of other protocols."""

import json
import tracemalloc
from collections.abc import Generator

import pytest

from crossdock.model.commands.admin import Remove
from crossdock.model.commands.core import DrawNumbers, Enqueue
from crossdock.model.job import Form, Spec
from crossdock.model.policies import Policy
from crossdock.model.states import State
from crossdock.protocols.masenko.commands import SLICE as INFO_SLICE
from crossdock.protocols.masenko.protocol import MasenkoProtocol
from crossdock.protocols.masenko.session import SLICE
from tests.support.dispatcher import PlainDispatcher
from tests.support.masenko_peer import MasenkoPeer

OK = b"OK {}\n"
NOT_ACQUIRED = b'ERR {"msg":"task not acquired"}\n'


@pytest.fixture
def protocol() -> MasenkoProtocol:
    return MasenkoProtocol()


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: MasenkoProtocol) -> MasenkoPeer:
    return MasenkoPeer(dispatcher, protocol)


def told(reply: bytes) -> dict[str, object]:
    verb, _, body = reply.partition(b" ")
    assert verb == b"OK" and body.endswith(b"\n"), reply
    found: dict[str, object] = json.loads(body)
    return found


class TestIds:
    def test_an_id_has_the_low_bits_of_the_job_number(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        assert peer.ask('PUSH {"name":"old"}') == b'OK {"id":1}\n'
        dispatcher.do(DrawNumbers(2**32 - 1))
        assert dispatcher.state.counters.number == 2**32
        assert peer.ask('PUSH {"name":"new"}') == b'OK {"id":1}\n'
        assert peer.ask('PUSH {"name":"waits","blocked_by":[1]}') == b'OK {"id":2}\n'
        assert [told(peer.ask("FETCH"))["name"] for _ in range(2)] == ["old", "new"]
        # The ID selects the newest task with these bits.
        assert peer.ask('ACK {"id":1}') == OK
        assert told(peer.ask("FETCH"))["name"] == "waits"
        assert {job.kind for job in dispatcher.state.jobs.values()} == {"old", "waits"}
        assert peer.ask('ACK {"id":1}') == OK
        assert peer.ask('ACK {"id":1}') == NOT_ACQUIRED

    def test_zero_is_skipped(self, dispatcher: PlainDispatcher, protocol: MasenkoProtocol, peer: MasenkoPeer) -> None:
        protocol.tick(dispatcher)
        assert dispatcher.state.counters.number == 0
        dispatcher.do(DrawNumbers(2**32 - 10))
        protocol.tick(dispatcher)
        protocol.tick(dispatcher)
        assert dispatcher.state.counters.number == 2**32
        assert peer.ask('PUSH {"name":"a"}') == b'OK {"id":1}\n'


class TestLeases:
    def test_a_task_deleted_by_an_operator(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        for verb in ("ACK", "NACK"):
            number = told(peer.ask('PUSH {"name":"a"}'))["id"]
            assert told(peer.ask("FETCH"))["id"] == number
            dispatcher.do(Remove("admin", "discarded", [int(str(number))], frozenset({State.LEASED})))
            assert peer.ask(f'{verb} {{"id":{number}}}') == NOT_ACQUIRED
        assert peer.ask("QUIT") == OK

    def test_a_deleted_task_fails_its_transaction(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        for _ in range(2):
            peer.ask('PUSH {"name":"a"}')
            peer.ask("FETCH")
        dispatcher.do(Remove("admin", "discarded", [2], frozenset({State.LEASED})))
        said = peer.ask('ATOMIC\nPUSH {"name":"b"}\nACK {"id":1}\nACK {"id":2}\nDONE')
        assert said == b'ERR {"msg":"task 2 not acquired"}\n'
        assert list(dispatcher.state.jobs) == [1]
        assert peer.ask('PUSH {"name":"c"}') == b'OK {"id":4}\n'
        assert peer.ask('ACK {"id":1}') == OK

    def test_a_lease_does_not_end_by_time(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        peer.ask('PUSH {"name":"a"}')
        assert told(peer.ask("FETCH"))["id"] == 1
        for _ in range(3_000):
            dispatcher.advance(40)
            assert peer.ask("PING") == b"PONG {}\n"
        assert peer.ask('ACK {"id":1}') == OK

    @pytest.mark.parametrize("end", ["quit", "lost", "silent"])
    def test_many_leases_are_released_in_slices(
        self, dispatcher: PlainDispatcher, protocol: MasenkoProtocol, peer: MasenkoPeer, end: str
    ) -> None:
        count = 3 * SLICE + 7
        peer.ask("ATOMIC\n" + 'PUSH {"name":"a"}\n' * count + "DONE")
        for _ in range(count):
            peer.ask("FETCH")
        assert len(dispatcher.state.by_state[State.LEASED]) == count
        if end == "quit":
            assert peer.ask("QUIT") == OK
        elif end == "silent":
            dispatcher.advance(45)
        else:
            work = peer.session.closed()
            assert work is not None
            assert len(dispatcher.state.by_state[State.LEASED]) == count - SLICE
            assert sum(1 for _ in work) == 3
        assert not dispatcher.state.by_state[State.LEASED]
        assert len(dispatcher.state.by_state[State.RETRYING]) == count

    def test_a_stopping_server_fails_nothing(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        peer.ask('PUSH {"name":"a"}')
        peer.ask("FETCH")
        assert peer.session.farewell() == b'ERR {"msg":"shutdown in progress"}\n'
        peer.close()
        again = dispatcher.restarted()
        assert told(MasenkoPeer(again, MasenkoProtocol()).ask("FETCH")) == {"id": 1, "queue": "default", "name": "a"}


class TestInfo:
    def test_many_queues_in_slices(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        count = 2 * INFO_SLICE + 3
        peer.ask("ATOMIC\n" + "".join(f'PUSH {{"name":"a","queue":"q{n}"}}\n' for n in range(count)) + "DONE")
        rows = told(peer.ask("INFO"))["queues"]
        assert rows == [{"name": f"q{n}", "ready": 1, "delayed": 0, "to_ack": 0} for n in range(count)]
        (request,) = peer.session.receive(b"INFO\n")
        work = peer.session.handle(request)
        assert isinstance(work, Generator)
        assert sum(1 for _ in work) == 3

    def test_jobs_of_other_protocols_are_not_in_band_0(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        for priority in (-4, 0, 4):
            dispatcher.do(
                Enqueue("faktory", [Spec(f"job{priority:05}", "q", "T", b"[]", Form.JSON, priority, Policy())])
            )
        peer.ask('PUSH {"name":"a","queue":"q","execute_at":"2020-01-01T00:00:00Z"}')
        assert peer.ask("INFO") == b'OK {"queues":[{"name":"q","ready":3,"delayed":1,"to_ack":0}]}\n'


@pytest.mark.parametrize(
    ("payload", "form", "shown"),
    [
        (b"", Form.NONE, b""),
        (b"", Form.RAW, b',"payload":""'),
        (b"two words\r\n<\xc3\xa9>", Form.RAW, ',"payload":"two words\\r\\n\\u003cé\\u003e"'.encode()),
        (b"\xff\x00", Form.RAW, b',"payload":{"base64":"/wA="}'),
        (b'[ 1,\r{"a" : "\xe2\x80\xa8 "} ]', Form.JSON, rb',"payload":[1,{"a":"\u2028 "}]'),
    ],
)
def test_payloads_of_other_protocols_are_shown(
    dispatcher: PlainDispatcher, peer: MasenkoPeer, payload: bytes, form: Form, shown: bytes
) -> None:
    dispatcher.do(Enqueue("workq", [Spec("some-jid", "q", "k", payload, form, 0, Policy())]))
    assert peer.ask('FETCH {"queues":["q"]}') == b'OK {"id":1,"queue":"q","name":"k"%b}\n' % shown


class TestLimits:
    def test_payload(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        fits, over = "x" * 65_533, "x" * 65_534
        assert peer.ask(f'PUSH {{"name":"a","payload":"{fits}"}}') == b'OK {"id":1}\n'
        assert peer.ask(f'PUSH {{"name":"a","payload":"{over}"}}') == (
            b'ERR {"msg":"cannot push to queue: wall append: serialize operation: input: arguments too big"}\n'
        )
        assert peer.ask('PUSH {"name":"a"}') == b'OK {"id":3}\n'
        assert told(peer.ask("FETCH"))["payload"] == fits
        blanks = " " * 70_000
        assert told(peer.ask(f'PUSH {{"name":"a",{blanks}"payload":{blanks}1}}')) == {"id": 4}
        assert b"arguments too big" in peer.ask(f'PUSH {{"name":"a","payload":[{blanks}]}}')

    @pytest.mark.parametrize("key", ["name", "queue", "deadqueue"])
    def test_names_as_long_as_a_line_are_not_kept(self, peer: MasenkoPeer, key: str) -> None:
        """They are refused, and no cache keeps them."""
        peer.ask('PUSH {"name":"a","queue":"b","deadqueue":"c"}')
        tracemalloc.start()
        try:
            for end in range(20):
                fields = {"name": "a", key: f"{'!' * 1_000_000}{end if end % 2 else '!' * end}"}
                assert peer.ask(f"PUSH {json.dumps(fields)}").startswith(b"ERR ")
            assert tracemalloc.get_traced_memory()[0] < 2_000_000
        finally:
            tracemalloc.stop()

    def test_input_quoted_in_errors_is_limited(self, peer: MasenkoPeer) -> None:
        for line in ("x" * 100_000, f'PUSH {{"name":"{"!" * 100_000}"}}', f'ACK {{"id":{"9" * 100_000}}}'):
            said = peer.ask(line)
            assert said.startswith(b"ERR ") and len(said) < 10_000
        assert len(peer.ask("ATOMIC\n" + "x" * 100_000 + "\nDONE")) < 10_000

    def test_a_full_server_refuses_pushes(self, dispatcher: PlainDispatcher, peer: MasenkoPeer) -> None:
        peer.ask('PUSH {"name":"a"}')
        dispatcher.full = "the disk is full"
        full = b'ERR {"msg":"the disk is full"}\n'
        assert peer.ask('PUSH {"name":"a"}') == full
        assert peer.ask('ATOMIC\nPUSH {"name":"a"}\nDONE') == full
        assert told(peer.ask("FETCH"))["id"] == 1
        assert peer.ask('ATOMIC\nACK {"id":1}\nDONE') == OK

    def test_the_error_for_too_many_connections(self, peer: MasenkoPeer) -> None:
        assert peer.session.crowded(10_001).reply == b'ERR {"msg":"too many connections: 10001"}\n'
