"""Workq sessions: random choice, limits, fencing over time, and arbitrary bytes."""

from collections import Counter
from collections.abc import Generator
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossdock.model.commands.admin import ForgetQueue
from crossdock.model.states import State
from crossdock.protocols.workq import inspect, session
from crossdock.protocols.workq.protocol import WorkqProtocol
from crossdock.testing.connection import run_out
from tests.support.conversation import ClockedFaktory, Conversation, Peer, worker
from tests.support.dispatcher import PlainDispatcher, StoringEngine

OK = b"+OK\r\n"
TIMEOUT = b"-TIMEOUT\r\n"


def ident(number: int) -> str:
    return f"61a444a0-6128-41c0-8078-{number:012d}"


@pytest.fixture
def protocol() -> WorkqProtocol:
    return WorkqProtocol()


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: WorkqProtocol) -> Peer:
    return Peer(dispatcher, protocol)


def add(peer: Peer, number: int, name: str = "q", payload: str = "x", options: str = "") -> None:
    assert peer.ask(f"add {ident(number)} {name} 1000 3600000 {len(payload)} {options}\r\n{payload}") == OK


class TestChoice:
    def test_every_queue_with_jobs_is_equally_likely(self, dispatcher: PlainDispatcher, peer: Peer) -> None:
        """A name that is repeated is not more likely, and an empty queue takes nothing from the others (workq.md
        section 10, row 13)."""
        dispatcher.engine = StoringEngine(dispatcher.state, Random(7))
        for number in range(900):
            add(peer, number, "abc"[number % 3])
        found = Counter(peer.ask("lease empty a b b b c 0").split(b"\r\n")[1].split()[1] for _ in range(300))
        assert set(found) == {b"a", b"b", b"c"}
        assert min(found.values()) > 70

    def test_the_order_within_a_queue_is_kept(self, dispatcher: PlainDispatcher, peer: Peer) -> None:
        for number in range(10):
            add(peer, number)
        leased = [peer.ask("lease other q 0").split()[2].decode() for _ in range(10)]
        assert leased == [ident(number) for number in range(10)]


class TestBounds:
    def test_the_names_of_one_lease_are_limited(self, peer: Peer) -> None:
        most = " ".join(f"q{n}" for n in range(session.NAMES_AT_MOST))
        assert peer.ask(f"lease {most} 0") == TIMEOUT
        assert peer.ask(f"lease {most} more 0") == b"-CLIENT-ERROR Invalid command args\r\n"

    def test_the_number_of_known_queues_is_limited(
        self, dispatcher: PlainDispatcher, peer: Peer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(session, "QUEUES_AT_MOST", 2)
        for name in "abcd":
            assert peer.ask(f"lease {name} 0") == TIMEOUT
        assert set(dispatcher.state.queues) == {"a", "b"}
        add(peer, 1, "c")
        assert peer.ask("lease c 0").startswith(b"+OK 1\r\n")

    def test_an_idle_lease_costs_no_hard_event(self, dispatcher: PlainDispatcher, peer: Peer) -> None:
        peer.ask("lease a 0")
        before = len(dispatcher.events)
        peer.ask("lease a 0")
        assert len(dispatcher.events) == before

    def test_a_block_in_many_pieces(self, peer: Peer) -> None:
        payload = bytes(range(256)) * 4_096
        peer.send(b"add %b q 1000 60000 %d\r\n" % (ident(1).encode(), len(payload)))
        for at in range(0, len(payload), 1_000):
            peer.send(payload[at : at + 1_000])
            assert not peer.said
        peer.send(b"\r")
        peer.send(b"\n")
        assert peer.take() == OK
        assert peer.ask("lease q 0") == b"+OK 1\r\n%b q %d\r\n%b\r\n" % (ident(1).encode(), len(payload), payload)

    def test_a_very_long_time_to_live_is_accepted(self, dispatcher: PlainDispatcher, peer: Peer) -> None:
        assert peer.ask(f"add {ident(1)} q 1000 18446744073709551615 0\r\n") == OK
        dispatcher.advance(100 * 365 * 86_400.0)
        assert b"ttl 18446744073709551615\r\n" in peer.ask(f"inspect job {ident(1)}")
        assert ident(1).encode() in Peer(dispatcher.restarted(), WorkqProtocol()).ask("lease q 0")


class TestFencing:
    """The settlement of another protocol's job claims the lease that this connection received (model.md section 6)."""

    @pytest.fixture
    def faktory(self, dispatcher: PlainDispatcher) -> Conversation:
        return worker(dispatcher, ClockedFaktory(dispatcher))

    def test_duplicates_of_a_jid_are_settled_newest_first(
        self, dispatcher: PlainDispatcher, peer: Peer, faktory: Conversation
    ) -> None:
        for args in ("[1]", "[2]"):
            faktory.ask(f'PUSH {{"jid":"{ident(1)}","jobtype":"T","queue":"q","args":{args}}}')
        assert [peer.ask("lease q 0")[-5:] for _ in range(2)] == [b"[1]\r\n", b"[2]\r\n"]
        assert peer.ask(f"complete {ident(1)} 0\r\n") == OK
        assert [job.payload for job in dispatcher.state.jobs.values()] == [b"[1]"]
        assert peer.ask(f"complete {ident(1)} 0\r\n") == OK
        assert peer.ask(f"complete {ident(1)} 0\r\n") == b"-NOT-FOUND\r\n"

    def test_a_client_without_the_lease_may_settle_an_unbound_one(
        self, dispatcher: PlainDispatcher, protocol: WorkqProtocol, peer: Peer, faktory: Conversation
    ) -> None:
        faktory.ask(f'PUSH {{"jid":"{ident(1)}","jobtype":"T","queue":"q","args":[]}}')
        peer.ask("lease q 0")
        assert Peer(dispatcher, protocol).ask(f"complete {ident(1)} 0\r\n") == OK
        assert not dispatcher.state.jobs

    def test_a_workq_job_that_faktory_leased_cannot_be_settled(
        self, dispatcher: PlainDispatcher, peer: Peer, faktory: Conversation
    ) -> None:
        """While Faktory has leased it, Workq clients cannot settle it. Afterwards any of them can."""
        add(peer, 1)
        faktory.ask("FETCH q")
        assert peer.ask(f"complete {ident(1)} 0\r\n") == b"-NOT-FOUND\r\n"
        assert peer.ask(f"fail {ident(1)} 0\r\n") == b"-NOT-FOUND\r\n"
        assert faktory.ask(f'ACK {{"jid":"{ident(1)}"}}') == OK
        assert dispatcher.state.jobs[1].state is State.COMPLETE
        add(peer, 2, options="-max-fails=2")
        faktory.ask("FETCH q")
        dispatcher.advance(60)
        assert dispatcher.state.jobs[2].state is State.READY
        assert peer.ask(f"complete {ident(2)} 0\r\n") == OK
        assert faktory.ask(f'FAIL {{"jid":"{ident(2)}"}}') == f"-ERR Job not found {ident(2)}\r\n".encode()


def test_a_lease_skips_any_number_of_expired_jobs(dispatcher: PlainDispatcher, peer: Peer) -> None:
    faktory = worker(dispatcher, ClockedFaktory(dispatcher))
    short = '{"jid":"12345678","jobtype":"T","queue":"q","args":[],"custom":{"expires_in":1}}'
    last = '{"jid":"87654321","jobtype":"T","queue":"q","args":[7]}'
    faktory.ask(f"PUSHB [{','.join([short] * 1_200)},{last}]")
    dispatcher.advance(2)
    assert peer.ask("lease q 0").endswith(b" q 3\r\n[7]\r\n")


def test_a_long_list_of_queues_is_made_in_slices(
    dispatcher: PlainDispatcher, protocol: WorkqProtocol, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests run in between. A queue that is removed meanwhile is left out."""
    monkeypatch.setattr(inspect, "SLICE", 3)
    peer.ask("lease g f e d c b a 0")
    assert peer.ask("inspect queues 5 2") == b"+OK 2\r\n%b" % b"".join(
        b"%b 2\r\nready-len 0\r\nscheduled-len 0\r\n" % name for name in (b"f", b"g")
    )
    asked = inspect.inspect(protocol, dispatcher, [b"inspect", b"queues", b"0", b"100"], {})
    assert isinstance(asked, Generator)
    next(asked)
    dispatcher.do(ForgetQueue("c"))
    answer = run_out(asked)
    assert isinstance(answer, bytes)
    assert [line[:1] for line in answer.split(b"\r\n") if line.endswith(b" 2")] == [b"a", b"b", b"d", b"e", b"f", b"g"]


def test_one_of_many_waiters_gets_the_job(dispatcher: PlainDispatcher, protocol: WorkqProtocol, peer: Peer) -> None:
    waiting = [Peer(dispatcher, protocol) for _ in range(50)]
    for each in waiting:
        each.send(b"lease q 60000\r\n")
    for each in waiting[:10]:
        each.close()
    add(peer, 1)
    assert [bool(each.take()) for each in waiting] == [False] * 10 + [True] + [False] * 39
    assert dispatcher.waits.asked == 1


def test_every_waiter_of_a_result_is_answered(dispatcher: PlainDispatcher, protocol: WorkqProtocol, peer: Peer) -> None:
    add(peer, 1)
    waiting = [Peer(dispatcher, protocol) for _ in range(50)]
    for each in waiting:
        each.send(f"result {ident(1)} 60000\r\ninspect queue q\r\n".encode())
    waiting[7].close()
    assert peer.ask(f"complete {ident(1)} 2\r\nok") == OK
    told = b"+OK 1\r\n%b 1 2\r\nok\r\n+OK 1\r\nq 2\r\nready-len 0\r\nscheduled-len 0\r\n" % ident(1).encode()
    assert [each.take() for each in waiting] == [b"" if each is waiting[7] else told for each in waiting]
    assert len(dispatcher.waits) == 0


def whole_replies(said: bytes) -> None:
    """Each reply begins with + or - and ends where the next one begins."""
    at = 0
    while at < len(said):
        end = said.index(b"\r\n", at)
        line = said[at:end]
        assert line[:1] in (b"+", b"-"), said[at : at + 80]
        at = end + 2
        if line == b"+OK 1" and said[at : at + 1] not in (b"+", b"-"):
            head_end = said.index(b"\r\n", at)
            words = said[at:head_end].split(b" ")
            at = head_end + 2
            if len(words) == 3:
                at += int(words[2]) + 2
            else:
                for _ in range(int(words[1])):
                    at = said.index(b"\r\n", at) + 2
    assert at == len(said)


WORDS = st.sampled_from(
    [b"add", b"schedule", b"run", b"result", b"lease", b"complete", b"fail", b"delete", b"inspect", b"job", b"jobs",
     b"queue", b"queues", b"server", b"scheduled-jobs", ident(1).encode(), ident(2).encode(), b"q", b"0", b"1", b"1000",
     b"2026-11-15T17:55:44Z", b"2027-01-01T00:00:00Z", b"-priority=1", b"-max-fails=2", b"-a=", b"\xff", b"\0"]
)  # fmt: skip
LINES = st.lists(WORDS, max_size=8).map(b" ".join) | st.sampled_from(
    [b"add %b q 1000 60000 1\r\nx" % ident(1).encode(), b"complete %b 1\r\ny" % ident(1).encode(), b"lease q 0",
     b"fail %b 1\r\nz" % ident(1).encode(), b"run %b q 1 0 0\r\n" % ident(2).encode(),
     b"result %b 5" % ident(1).encode(), b"add %b q 9 9 1" % ident(2).encode()]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(LINES, st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"]), st.floats(0, 2)), max_size=12))
def test_any_bytes_are_answered_in_whole_replies(lines: list[tuple[bytes, bytes, float]]) -> None:
    """No command raises, no request waits forever, and a restart recovers the same jobs."""
    dispatcher = PlainDispatcher()
    peer = Peer(dispatcher, WorkqProtocol())
    said = b""
    for line, end, seconds in lines:
        peer.send(line + end)
        dispatcher.advance(seconds)
        said += peer.take()
    dispatcher.advance(2_000)
    said += peer.take()
    whole_replies(said)
    assert len(dispatcher.waits) == 0
    again = dispatcher.restarted()
    assert {job.jid: job.state for job in again.state.jobs.values()} == {
        job.jid: job.state for job in dispatcher.state.jobs.values()
    }
