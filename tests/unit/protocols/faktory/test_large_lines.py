"""Large lines are read in pieces. Commands that need no large lines refuse them, and the rejection is delayed."""

import json
from collections.abc import Generator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossdock.protocols import rejection_delay
from crossdock.protocols.faktory import push
from crossdock.protocols.faktory.job import UNREADABLE, decode_many
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.protocols.faktory.push import read_pieces
from crossdock.protocols.job_spec import InvalidJob
from crossdock.protocols.rejection_delay import LARGE
from crossdock.server.flow_control import PIECE, REQUESTS_A_PASS
from tests.support.conversation import Conversation, say
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body
from tests.support.socketless_server import SocketlessServer

OK = b"+OK\r\n"

#: Characters that could be mistaken for the end of a job.
tricky = st.text(alphabet='{}[],"\\ x', max_size=12)
args = st.recursive(
    tricky | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tricky, inner, max_size=3),
    max_leaves=10,
)
jobs = st.lists(st.fixed_dictionaries({"jid": tricky, "args": st.lists(args, max_size=3)}), max_size=12)
spellings: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {"indent": 1}, {"separators": (" , ", ":")}])


def read(text: bytes) -> list[Any] | None:
    """The jobs, None if the list was refused."""
    work = read_pieces(memoryview(text), decode_many)
    try:
        while True:
            next(work)
    except StopIteration as end:
        return list(end.value)
    except InvalidJob:
        return None


def read_at_once(text: bytes) -> list[Any] | None:
    try:
        return list(decode_many(text))
    except UNREADABLE:
        return None


class TestPieces:
    @pytest.fixture(autouse=True, scope="class")
    @staticmethod
    def small() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(push, "PIECE", 5)
            patch.setattr(push, "KEPT", 4)
            yield

    @given(jobs, spellings)
    def test_the_pieces_give_the_same_jobs_as_the_whole(self, listed: list[Any], spelling: dict[str, Any]) -> None:
        text = json.dumps(listed, **spelling).encode()
        found = read(text)
        assert found is not None
        assert found == read_at_once(text)

    @given(jobs, st.data())
    def test_damaged_lists_give_the_same_result_as_the_whole(self, listed: list[Any], data: st.DataObject) -> None:
        text = json.dumps(listed).encode()
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 3))
        text = (
            text[:at]
            + data.draw(st.sampled_from([b"", b",", b"}", b"{", b"]", b"[", b'"', b"7", b"{},"]))
            + text[at + cut :]
        )
        assert read(text) == read_at_once(text)

    @pytest.mark.parametrize("end", [b",]", b",", b"", b"]]", b",7]", b"] x", b", {]"])
    def test_a_wrong_end_is_refused(self, end: bytes) -> None:
        assert read(b"[" + b'{"jid":"x"},' * 20 + b"{}" + end) is None


def test_refusals_are_answered_in_order(client: Conversation) -> None:
    wrong = [f"{n * 7_919 % 5_000:x}" for n in range(5_000)]
    told = body(say(client, b"PUSHB " + json.dumps([{"jid": jid} for jid in wrong]).encode()))
    assert told == msgspec.json.encode(dict.fromkeys(sorted(wrong), "jobs must have a reasonable jid parameter"))


def test_good_jobs_among_bad_ones(dispatcher: PlainDispatcher, client: Conversation) -> None:
    listed = [{"jid": f"job-{n:05d}", "jobtype": "T" if n % 3 else "", "args": ["},{"]} for n in range(5_000)]
    told = json.loads(body(say(client, b"PUSHB " + json.dumps(listed).encode())))
    assert set(told) == {f"job-{n:05d}" for n in range(0, 5_000, 3)}
    assert len(dispatcher.state.jobs) == 5_000 - len(told)


@pytest.mark.parametrize("verb", [b"FETCH", b"QUEUE", b"MUTATE", b"TRACK", b"BATCH", b"FAIL", b"ACK", b"BEAT", b"END"])
def test_only_pushes_may_use_the_whole_line_limit(client: Conversation, verb: bytes) -> None:
    assert say(client, verb + b" " + b"x" * (2 * 1024 * 1024)).startswith(b"-ERR %b takes at most " % verb)


def test_a_large_job_is_accepted_unchanged(dispatcher: PlainDispatcher, client: Conversation) -> None:
    args = b'["' + "ä".encode() * 400_000 + b'"]'
    assert say(client, b'PUSH {"jid":"12345678","jobtype":"T","args":%b}' % args) == OK
    (job,) = dispatcher.state.jobs.values()
    assert job.payload == args


def test_a_large_unknown_command_is_not_counted_as_a_command(client: Conversation) -> None:
    assert say(client, b"NOTHING " + b"x" * LARGE).startswith(b"-ERR unknown command NOTHING")
    assert json.loads(body(say(client, b"INFO")))["server"]["command_count"] == 1, "only INFO itself"


@pytest.mark.parametrize("at", [0, 300_000, 799_999])
def test_an_incomplete_character_is_refused(dispatcher: PlainDispatcher, client: Conversation, at: int) -> None:
    text = bytearray(b"a" * 800_000)
    text[at] = 0xC3
    line = b'PUSH {"jid":"12345678","jobtype":"T","args":["%b"]}' % bytes(text)
    assert say(client, line).startswith(b"-ERR invalid JSON: 'utf-8' codec can't decode byte 0xc3")
    dispatcher.advance(1)
    assert say(client, b"PUSHB [" + line[5:] + b"]").startswith(b"-ERR invalid JSON: 'utf-8' codec")


class TestRejectionDelay:
    """A rejection is delayed by two hundred times the time for which it blocked other connections."""

    LINE = b'PUSH {"jid":"1","jobtype":"T","args":["' + b"a" * LARGE + b'"]}\r\n'

    @pytest.mark.parametrize(
        ("line", "steps"),
        [(LINE, 2), (LINE.replace(b"PUSH", b"PUSHB"), 2), (b"NOTHING " + b"x" * LARGE + b"\r\n", 1)],
    )
    def test_an_error_is_delayed(
        self, dispatcher: PlainDispatcher, client: Conversation, line: bytes, steps: int
    ) -> None:
        dispatcher.slowness = 0.02 / steps
        rests, answer = self.worked(client, line)
        assert rests == pytest.approx(4.0, abs=0.01)
        assert answer.startswith(b"-ERR ")

    def test_the_delay_is_limited(self, dispatcher: PlainDispatcher, client: Conversation) -> None:
        dispatcher.slowness = 10.0
        assert self.worked(client, self.LINE)[0] == 60.0

    @staticmethod
    def worked(client: Conversation, line: bytes) -> tuple[float, bytes]:
        """Seconds of delay, and the answer."""
        (request,) = client.session.receive(line)
        work = client.session.handle(request)
        assert isinstance(work, Generator)
        rests = 0.0
        while True:
            try:
                found = next(work)
                rests += found if isinstance(found, float) else 0.0
            except StopIteration as end:
                return rests, end.value

    def test_an_accepted_job_is_not_delayed(self, dispatcher: PlainDispatcher, client: Conversation) -> None:
        dispatcher.slowness = 0.02
        assert say(client, self.LINE.replace(b'"1"', b'"12345678"').strip()) == OK
        assert say(client, b"QUEUE LATENCY") == b"$2\r\n{}\r\n"

    def test_a_small_error_is_not_delayed(self, dispatcher: PlainDispatcher, client: Conversation) -> None:
        dispatcher.slowness = 0.02
        assert say(client, b"PUSH {}").startswith(b"-ERR ")
        assert say(client, b"QUEUE LATENCY") == b"$2\r\n{}\r\n"

    @pytest.mark.parametrize(("wrong", "seconds"), [(0, 0.0), (500, 2.0), (1_000, 4.0)])
    def test_refused_jobs_of_a_list_delay_the_reply(
        self, dispatcher: PlainDispatcher, client: Conversation, wrong: int, seconds: float
    ) -> None:
        dispatcher.slowness = 0.02
        jobs = [b"{}"] * wrong + [b'{"jid":"12345678","jobtype":"T","args":[]}'] * (1_000 - wrong)
        (line,) = client.session.receive(b"PUSHB [" + b",".join(jobs) + b"]\r\n")
        work = client.session.handle(line)
        assert isinstance(work, Generator)
        assert sum(found for found in work if isinstance(found, float)) == pytest.approx(seconds)


def test_a_long_line_is_read_piece_by_piece() -> None:
    server = SocketlessServer(FaktoryProtocol())
    connection, transport = server.connect()
    connection.data_received(b'HELLO {"v":2}\r\n')
    reading: list[bool] = []
    transport.pause_reading = lambda: reading.append(False)  # type: ignore[method-assign]
    transport.resume_reading = lambda: reading.append(True)  # type: ignore[method-assign]
    connection.data_received(b"PUSH " + b"x" * 8 * PIECE)
    assert reading == [False]
    server.loop.run()
    assert reading == [False, True]
    connection.data_received(b"x" * 1_000)
    assert reading == [False, True]


def test_requests_after_a_delayed_error_are_answered_after_the_peer_closed_its_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rejection_delay, "_NEGLIGIBLE_S", 0.0
    )  # the clock of the test server stands still during a request
    monkeypatch.setattr(rejection_delay, "_GATHERED_A_S", 1e6)
    server = SocketlessServer(FaktoryProtocol())
    connection, transport = server.connect()
    server.say(connection, 'HELLO {"v":2}')
    connection.data_received(TestRejectionDelay.LINE + b"QUEUE LATENCY\r\nEND\r\n")
    server.sync()
    assert connection.eof_received()
    server.sync()
    assert b"-ERR" not in transport.heard, "the error is delayed"
    server.loop.advance(60)
    server.sync()
    refusal, last = transport.heard.split(b"\r\n", 3)[2:]
    assert refusal.startswith(b"-ERR jobs must have a reasonable jid")
    assert last == b"$2\r\n{}\r\n+OK\r\n" and transport.eof


def test_a_peer_may_be_lost_before_all_its_requests_are_handled() -> None:
    server = SocketlessServer(FaktoryProtocol())
    connection, _ = server.connect()
    connection.data_received(b'HELLO {"v":2}\r\n' + b"QUEUE LATENCY\r\n" * 2 * REQUESTS_A_PASS)
    server.loop.step()
    connection.connection_lost(None)
    server.sync()  # the remaining requests are not handled
    assert not server.connections
