"""Which client may settle a lease, tested through requests and replies (model.md section 6).

A settlement by the worker that received a lease claims that lease: if it comes late, it changes nothing for the worker
that holds the job by then.
"""

import json

import pytest

from crossdock.model.job import Job, Number
from crossdock.model.states import State
from tests.support.conversation import ClockedFaktory, Conversation, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.resp import body

OK = b"+OK\r\n"
JID = "12345678"
NOT_FOUND = f"-ERR Job not found {JID}\r\n".encode()
ACK = f'ACK {{"jid":"{JID}"}}'
FAIL = f'FAIL {{"jid":"{JID}"}}'

#: Longer than the shortest lease and the latest time of the first retry.
LATER = 60 + 44.0


def push(peer: Conversation, jid: str = JID, args: str = "[]") -> None:
    assert peer.ask(f'PUSH {{"jid":"{jid}","jobtype":"T","args":{args},"reserve_for":60}}') == OK


def fetch(peer: Conversation) -> object:
    return json.loads(body(peer.ask("FETCH default")))["args"]


def job(dispatcher: PlainDispatcher, number: int = 1) -> Job:
    return dispatcher.state.jobs[Number(number)]


def leased_to(dispatcher: PlainDispatcher, number: int = 1) -> str | None:
    lease = dispatcher.state.jobs[Number(number)].lease
    return None if lease is None else lease.worker


def beat_and_advance(dispatcher: PlainDispatcher, seconds: float, *peers: Conversation) -> None:
    """Advance time while these workers keep sending BEAT."""
    left = seconds
    while left > 0:
        dispatcher.advance(min(left, 30.0))
        left -= 30.0
        for peer in peers:
            assert peer.ask(f'BEAT {{"wid":"{peer.session.wid}"}}') == OK


@pytest.mark.parametrize(("line", "answer"), [(ACK, OK), (FAIL, NOT_FOUND)])
def test_a_late_settlement_leaves_the_newer_lease_alone(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory, line: str, answer: bytes
) -> None:
    first, second = worker(dispatcher, protocol, "first"), worker(dispatcher, protocol, "second")
    push(first)
    fetch(first)
    beat_and_advance(dispatcher, LATER, first, second)
    fetch(second)
    assert leased_to(dispatcher) == "second"
    before = len(dispatcher.events)
    assert first.ask(line) == answer
    assert first.ask(line) == answer  # a repeated settlement has the same reply
    assert len(dispatcher.events) == before
    assert leased_to(dispatcher) == "second"
    assert second.ask(ACK) == OK
    assert not dispatcher.state.jobs


def test_a_late_settlement_after_the_worker_was_dropped_and_came_back(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory
) -> None:
    """The worker stops, is dropped without a BEAT, its lease expires, and it returns with the job done."""
    first, second = worker(dispatcher, protocol, "first"), worker(dispatcher, protocol, "second")
    push(first)
    fetch(first)
    beat_and_advance(dispatcher, LATER, second)
    assert first.is_closed
    fetch(second)
    again = worker(dispatcher, protocol, "first")
    assert again.ask(ACK) == OK
    assert again.ask(FAIL) == NOT_FOUND
    assert leased_to(dispatcher) == "second"


def test_a_worker_that_reconnects_settles_its_leases(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
    first = worker(dispatcher, protocol, "first")
    push(first)
    fetch(first)
    first.ask("END")
    assert worker(dispatcher, protocol, "first").ask(ACK) == OK
    assert not dispatcher.state.jobs


def test_leases_of_a_departed_worker_are_forgotten_a_day_after_their_end(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory
) -> None:
    first, second = worker(dispatcher, protocol, "first"), worker(dispatcher, protocol, "second")
    push(first)
    fetch(first)
    first.close()
    day = 86_400.0
    beat_and_advance(dispatcher, 60 + day - 1, second)
    fetch(second)
    late = worker(dispatcher, protocol, "first")
    late.ask(ACK)
    assert leased_to(dispatcher) == "second"
    late.close()
    beat_and_advance(dispatcher, 2 * 3_600, second)
    assert "first" not in protocol.workers._leases
    assert "second" in protocol.workers._leases


def test_a_worker_that_settled_all_leases_leaves_no_record(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory
) -> None:
    for name in ("one", "two", "three"):
        peer = worker(dispatcher, protocol, name)
        push(peer)
        fetch(peer)
        assert peer.ask(ACK) == OK
        peer.close()
    assert not protocol.workers._leases


def test_a_settlement_by_a_worker_that_leased_the_job_again_applies_to_the_newest_lease(
    dispatcher: PlainDispatcher, protocol: ClockedFaktory
) -> None:
    """The settlement applies to the newest lease: the protocol cannot name the older one."""
    peer = worker(dispatcher, protocol, "first")
    push(peer)
    fetch(peer)
    beat_and_advance(dispatcher, LATER, peer)
    fetch(peer)
    assert peer.ask(ACK) == OK
    assert not dispatcher.state.jobs


def test_two_connections_of_one_worker_share_its_leases(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
    one, two, other = (
        worker(dispatcher, protocol, "w"),
        worker(dispatcher, protocol, "w"),
        worker(dispatcher, protocol, "other"),
    )
    push(one)
    fetch(one)
    beat_and_advance(dispatcher, LATER, one, other)
    fetch(other)
    assert two.ask(ACK) == OK
    assert leased_to(dispatcher) == "other"
    assert other.ask(ACK) == OK
    push(one)
    fetch(one)
    assert two.ask(ACK) == OK
    assert not dispatcher.state.jobs


def test_a_client_without_leases_may_settle(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
    """Any connection may ACK any jid: a Faktory lease is unbound (faktory.md section 5.5)."""
    holder, stranger, producer = (
        worker(dispatcher, protocol, "w"),
        worker(dispatcher, protocol, "stranger"),
        worker(dispatcher, protocol),
    )
    for line, peer in ((ACK, stranger), (FAIL, producer)):
        push(holder)
        fetch(holder)
        assert peer.ask(line) == OK
        assert dispatcher.state.by_state[State.LEASED] == []


def test_a_connection_without_a_name_is_fenced_by_itself(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
    one, two = worker(dispatcher, protocol), worker(dispatcher, protocol)
    push(one)
    fetch(one)
    dispatcher.advance(LATER)
    fetch(two)
    assert one.ask(ACK) == OK
    assert one.ask(FAIL) == NOT_FOUND
    assert job(dispatcher).state is State.LEASED
    assert two.ask(ACK) == OK
    assert not dispatcher.state.jobs


def test_a_settlement_after_the_lease_expired(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
    peer = worker(dispatcher, protocol, "w")
    push(peer)
    fetch(peer)
    beat_and_advance(dispatcher, 61, peer)
    assert peer.ask(ACK) == OK
    assert peer.ask(FAIL) == NOT_FOUND
    assert job(dispatcher).state is State.RETRYING
    assert job(dispatcher).failures == 1


class TestDuplicatesOfAJid:
    def test_each_holder_settles_its_own(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
        one, two = worker(dispatcher, protocol, "one"), worker(dispatcher, protocol, "two")
        push(one, args="[1]")
        push(one, args="[2]")
        assert (fetch(one), fetch(two)) == ([1], [2])
        assert two.ask(ACK) == OK
        assert [each.payload for each in dispatcher.state.jobs.values()] == [b"[1]"]
        assert one.ask(FAIL) == OK
        assert job(dispatcher).state is State.RETRYING

    def test_one_holder_of_both_settles_the_newer_first(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory
    ) -> None:
        peer = worker(dispatcher, protocol, "one")
        push(peer, args="[1]")
        push(peer, args="[2]")
        assert (fetch(peer), fetch(peer)) == ([1], [2])
        assert peer.ask(ACK) == OK
        assert [each.payload for each in dispatcher.state.jobs.values()] == [b"[1]"]
        assert peer.ask(ACK) == OK
        assert not dispatcher.state.jobs
        assert peer.ask(FAIL) == NOT_FOUND

    def test_a_client_without_leases_settles_the_oldest_leased_job(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory
    ) -> None:
        one, two, stranger = (
            worker(dispatcher, protocol, "one"),
            worker(dispatcher, protocol, "two"),
            worker(dispatcher, protocol),
        )
        push(one, args="[1]")
        push(one, args="[2]")
        push(one, args="[3]")
        assert (fetch(two), fetch(one)) == ([1], [2])
        assert stranger.ask(ACK) == OK
        assert [each.payload for each in dispatcher.state.jobs.values()] == [b"[2]", b"[3]"]
        assert stranger.ask(ACK) == OK
        assert stranger.ask(FAIL) == NOT_FOUND
        assert [(each.payload, each.state) for each in dispatcher.state.jobs.values()] == [(b"[3]", State.READY)]


class TestAfterARestart:
    def after(self, dispatcher: PlainDispatcher, wid: str) -> Conversation:
        dispatcher = dispatcher.restarted()
        self.dispatcher, self.protocol = dispatcher, ClockedFaktory(dispatcher)
        return worker(dispatcher, self.protocol, wid)

    def test_a_worker_settles_its_own_lease(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
        peer = worker(dispatcher, protocol, "w")
        push(peer)
        fetch(peer)
        assert self.after(dispatcher, "w").ask(ACK) == OK
        assert not self.dispatcher.state.jobs

    @pytest.mark.parametrize(("line", "answer"), [(ACK, OK), (FAIL, NOT_FOUND)])
    def test_a_worker_does_not_settle_the_lease_of_another(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory, line: str, answer: bytes
    ) -> None:
        peer = worker(dispatcher, protocol, "w")
        push(peer)
        fetch(peer)
        assert self.after(dispatcher, "another").ask(line) == answer
        assert leased_to(self.dispatcher) == "w"

    def test_a_nameless_connection_may_settle_it(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
        peer = worker(dispatcher, protocol, "w")
        push(peer)
        fetch(peer)
        assert self.after(dispatcher, "").ask(ACK) == OK
        assert not self.dispatcher.state.jobs

    def test_a_nameless_lease_may_be_settled_by_a_name(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory
    ) -> None:
        peer = worker(dispatcher, protocol)
        push(peer)
        fetch(peer)
        assert self.after(dispatcher, "w").ask(ACK) == OK
        assert not self.dispatcher.state.jobs

    def test_each_worker_settles_its_own_duplicate(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
        one, two = worker(dispatcher, protocol, "one"), worker(dispatcher, protocol, "two")
        push(one, args="[1]")
        push(one, args="[2]")
        fetch(one), fetch(two)
        assert self.after(dispatcher, "two").ask(ACK) == OK
        assert [each.payload for each in self.dispatcher.state.jobs.values()] == [b"[1]"]

    def test_a_lease_that_expired_after_the_restart_cannot_be_settled(
        self, dispatcher: PlainDispatcher, protocol: ClockedFaktory
    ) -> None:
        peer = worker(dispatcher, protocol, "w")
        push(peer)
        fetch(peer)
        dispatcher.advance(30)
        other = self.after(dispatcher, "other")
        beat_and_advance(self.dispatcher, LATER, other)
        fetch(other)
        late = worker(self.dispatcher, self.protocol, "w")
        assert late.ask(ACK) == OK
        assert late.ask(FAIL) == NOT_FOUND
        assert leased_to(self.dispatcher) == "other"

    def test_new_leases_are_unbound_again(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> None:
        push(worker(dispatcher, protocol, "w"))
        holder = self.after(dispatcher, "holder")
        fetch(holder)
        assert worker(self.dispatcher, self.protocol, "stranger").ask(ACK) == OK
        assert not self.dispatcher.state.jobs
