"""ACK, ACKB, FAIL, SNOOZE, EXTEND and CANCEL of a session with extensions."""

from typing import Any

import pytest

from crossdock.lake.redaction import Payloads
from crossdock.model.commands.core import Enqueue
from crossdock.model.commands.qless import Pop
from crossdock.model.job import Extra, Form, Job, Spec
from crossdock.model.policies import LeaseExpiry, Policy
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import State
from tests.support.conversation import ClockedFaktory
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended
from tests.support.lake_rows import rows_of

JID = "12345678"


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def protocol(dispatcher: PlainDispatcher) -> ClockedFaktory:
    return ClockedFaktory(dispatcher)


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ExtendedPeer:
    return extended(dispatcher, protocol, "w")


def job(dispatcher: PlainDispatcher) -> Job:
    return next(dispatcher.state.named(JID))


def leased(peer: ExtendedPeer, **members: Any) -> None:
    peer.push(JID, **members)
    assert [each["jid"] for each in peer.fetch()] == [JID]


class TestAck:
    def test_many_at_once(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        some = [{"jid": f"job-{number:05}", "jobtype": "t", "args": []} for number in range(500)]
        peer.call("PUSHB", some)
        found = peer.fetch(500)
        acks = [{"jid": each["jid"]} for each in found] + [{"jid": "unknown"}]
        assert peer.call("ACKB", acks) == {"refused": {"unknown": "job not found"}}
        assert not dispatcher.state.jobs
        assert peer.call("ACKB", []) == {"refused": {}}

    def test_more_than_a_thousand(self, peer: ExtendedPeer) -> None:
        error = "-ERR invalid ACKB: Expected `array` of length <= 1000"
        assert peer.call("ACKB", [{"jid": "a"}] * 1_001) == error

    def test_an_unknown_job_is_acknowledged(self, peer: ExtendedPeer) -> None:
        assert peer.call("ACK", {"jid": "unknown"}) == "+OK"

    def test_the_limit_of_a_result(self, peer: ExtendedPeer) -> None:
        most = 1024 * 1024
        leased(peer, keep_result_s=60)
        assert peer.call("ACK", {"jid": JID, "result": "x" * most}).startswith("-ERR invalid ACK: result must not be")
        assert peer.call("ACK", {"jid": JID, "result": "x" * (most + 2_000)}).startswith("-ERR ACK takes at most")
        refused = peer.call("ACKB", [{"jid": JID, "result": "x" * most}])["refused"]
        assert refused == {JID: "result must not be longer than 1048576 bytes"}
        assert peer.call("ACK", {"jid": JID, "result": "x" * (most - 2)}) == "+OK"
        assert len(peer.result(JID)["result"]) == most - 2

    def test_a_result_that_is_too_deep(self, peer: ExtendedPeer) -> None:
        deep: Any = []
        for _ in range(70):
            deep = [deep]
        leased(peer)
        assert peer.call("ACK", {"jid": JID, "result": deep}) == "-ERR invalid ACK: result is nested deeper than 64"

    def test_large_results_in_one_request(self, peer: ExtendedPeer) -> None:
        leased(peer, keep_result_s=60)
        assert peer.call("ACKB", [{"jid": JID, "result": ["x" * 200_000]}]) == {"refused": {}}
        assert peer.result(JID)["result"] == ["x" * 200_000]


class TestFail:
    def test_a_final_failure(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        assert peer.call("FAIL", {"jid": JID, "errtype": "E", "message": "m", "final": True}) == "+OK"
        assert (job(dispatcher).state, job(dispatcher).failures) == (State.DEAD, 1)
        assert dispatcher.state.counters.failures == 1

    def test_a_delay_in_place_of_the_backoff(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        assert peer.call("FAIL", {"jid": JID, "delay_s": 2.5}) == "+OK"
        assert (job(dispatcher).state, job(dispatcher).failures) == (State.RETRYING, 1)
        dispatcher.advance(2.4)
        assert peer.fetch() == []
        dispatcher.advance(0.1)
        assert [each["failure"]["retry_count"] for each in peer.fetch()] == [0]

    def test_no_delay(self, peer: ExtendedPeer) -> None:
        leased(peer)
        assert peer.call("FAIL", {"jid": JID, "delay_s": 0}) == "+OK"
        assert len(peer.fetch()) == 1

    def test_the_last_try_ignores_the_delay(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer, retry=0)
        assert peer.call("FAIL", {"jid": JID, "delay_s": 5}) == "+OK"
        assert not dispatcher.state.jobs

    def test_without_the_new_members(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        assert peer.call("FAIL", {"jid": JID, "errtype": "E"}) == "+OK"
        assert job(dispatcher).due == dispatcher.now.wall + 15
        assert peer.call("FAIL", {"jid": JID}) == f"-ERR Job not found {JID}"
        assert peer.call("FAIL", {}) == "-ERR missing JID"


class TestSnooze:
    def test_it_is_not_a_failure(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer, custom={"track": 1})
        assert peer.call("SNOOZE", {"jid": JID, "delay_s": 60, "reason": "busy"}) == "+OK"
        assert (job(dispatcher).state, job(dispatcher).failures) == (State.SCHEDULED, 0)
        assert peer.call("TRACK GET", None) is not None
        dispatcher.advance(59.0)
        assert peer.fetch() == []
        dispatcher.advance(1.0)
        [found] = extended(dispatcher).fetch()
        assert (found["attempt"], "failure" in found) == (2, False)

    def test_no_delay(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        assert peer.call("SNOOZE", {"jid": JID, "delay_s": 0}) == "+OK"
        dispatcher.advance(0.0)
        assert len(peer.fetch()) == 1

    def test_it_is_durable(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        peer.call("SNOOZE", {"jid": JID, "delay_s": 60})
        after = dispatcher.restarted()
        assert next(after.state.named(JID)).state is State.SCHEDULED
        assert next(after.state.named(JID)).due == dispatcher.now.wall + 60

    def test_a_job_that_is_not_leased(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        assert peer.call("SNOOZE", {"jid": JID, "delay_s": 5}) == f"-ERR Job not found {JID}"
        assert peer.call("SNOOZE", {"jid": "unknown", "delay_s": 5}) == "-ERR Job not found unknown"

    def test_a_qless_job(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        _push_qless(dispatcher)
        assert len(peer.fetch()) == 1
        assert peer.call("SNOOZE", {"jid": JID, "delay_s": 5}) == "+OK"
        dispatcher.advance(5.0)
        assert len(peer.fetch()) == 1

    def test_the_lake_has_a_row(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        dispatcher.advance(3.0)
        peer.call("SNOOZE", {"jid": JID, "delay_s": 60, "reason": "busy"})
        [row] = [row for row in rows_of(dispatcher.events, Payloads()) if row["event"] == "snoozed"]
        assert (row["state"], row["outcome"], row["run_s"], row["why"]) == ("scheduled", "snoozed", 3.0, "busy")


def _push_qless(dispatcher: PlainDispatcher) -> None:
    lazy = Policy(5, lease_expiry=LeaseExpiry.LAZY)
    extra = Extra(protocol_data=QlessData())
    dispatcher.do(Enqueue("qless", [Spec(JID, "default", "kind", b"{}", Form.JSON, 0, lazy, 0.0, extra)]))


class TestExtend:
    def test_leases_last_longer(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        peer.fetch(lease_s=10)
        dispatcher.advance(9.0)
        assert peer.call("EXTEND", {"jids": [JID, JID], "lease_s": 10}) == {"lost": []}
        dispatcher.advance(9.0)
        assert job(dispatcher).state is State.LEASED
        assert job(dispatcher).lease.beats == 1  # type: ignore[union-attr]
        dispatcher.advance(1.0)
        assert job(dispatcher).state is State.RETRYING

    def test_they_are_never_shortened(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        before = job(dispatcher).lease.end  # type: ignore[union-attr]
        assert peer.call("EXTEND", {"jids": [JID], "lease_s": 5}) == {"lost": []}
        assert job(dispatcher).lease.end == before  # type: ignore[union-attr]

    def test_it_is_durable(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        peer.call("EXTEND", {"jids": [JID], "lease_s": 7_200})
        [after] = dispatcher.restarted().state.named(JID)
        assert after.lease is not None
        assert after.lease.end == dispatcher.now.steady + 7_200

    def test_lost_leases(self, dispatcher: PlainDispatcher, protocol: ClockedFaktory, peer: ExtendedPeer) -> None:
        """Expired, cancelled, settled, unknown, and taken by another worker."""
        other = extended(dispatcher, protocol, "other")
        jids = [f"job-{number:05}" for number in range(5)]
        for jid in jids:
            peer.push(jid)
        peer.fetch(5, lease_s=10)
        peer.call("EXTEND", {"jids": jids[1:], "lease_s": 30})
        dispatcher.advance(12.0)
        other.call("CANCEL", {"jids": [jids[1]]})
        peer.call("ACK", {"jid": jids[2]})
        peer.call("FAIL", {"jid": jids[3], "delay_s": 0})
        assert [each["jid"] for each in other.fetch()] == [jids[3]]
        assert peer.call("EXTEND", {"jids": [*jids, "unknown"], "lease_s": 30}) == {"lost": [*jids[:4], "unknown"]}
        assert other.call("EXTEND", {"jids": jids, "lease_s": 30}) == {"lost": [*jids[:3], jids[4]]}

    def test_after_a_restart_the_name_of_the_worker_counts(
        self, dispatcher: PlainDispatcher, peer: ExtendedPeer
    ) -> None:
        leased(peer)
        after = dispatcher.restarted()
        protocol = ClockedFaktory(after)
        assert extended(after, protocol, "other").call("EXTEND", {"jids": [JID], "lease_s": 5}) == {"lost": [JID]}
        assert extended(after, protocol).call("EXTEND", {"jids": [JID], "lease_s": 5}) == {"lost": [JID]}
        assert extended(after, protocol, "w").call("EXTEND", {"jids": [JID], "lease_s": 5}) == {"lost": []}

    def test_a_qless_job_that_expires_lazily(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        _push_qless(dispatcher)
        assert len(peer.fetch(lease_s=10)) == 1
        assert peer.call("EXTEND", {"jids": [JID], "lease_s": 100}) == {"lost": []}
        lease = job(dispatcher).lease
        assert lease is not None
        assert (lease.late, lease.end) == (dispatcher.now.steady + 100, float("inf"))
        dispatcher.advance(50.0)
        assert dispatcher.do(Pop("qless", dispatcher.now.wall, "default", "other", 1, 60.0)) is not None
        assert job(dispatcher).state is State.LEASED

    def test_at_most_a_thousand(self, peer: ExtendedPeer) -> None:
        error = "-ERR invalid EXTEND: Expected `array` of length <= 1000 - at `$.jids`"
        assert peer.call("EXTEND", {"jids": ["a"] * 1_001, "lease_s": 5}) == error


class TestCancel:
    def test_jobs_in_any_live_state(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push("retrying")
        peer.fetch()
        peer.call("FAIL", {"jid": "retrying"})
        peer.push("leased-0")
        peer.fetch()
        peer.push("waiting0")
        peer.push("blocked0", depends_on=["leased-0"])
        peer.push("planned0", at="2030-01-01T00:00:00Z")
        jids = ["blocked0", "leased-0", "waiting0", "planned0", "retrying", "unknown"]
        reply = peer.call("CANCEL", {"jids": jids, "reason": "not needed"})
        assert reply == {"cancelled": 5, "unknown": ["unknown"], "ended": []}
        assert not dispatcher.state.jobs
        assert peer.call("EXTEND", {"jids": ["leased-0"], "lease_s": 5}) == {"lost": ["leased-0"]}
        assert peer.call("ACKB", [{"jid": "leased-0"}]) == {"refused": {"leased-0": "job not found"}}

    def test_a_job_that_has_ended_is_left_alone(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        leased(peer)
        peer.call("FAIL", {"jid": JID, "final": True})
        assert peer.call("CANCEL", {"jids": [JID]}) == {"cancelled": 0, "unknown": [], "ended": [JID]}
        assert job(dispatcher).state is State.DEAD

    def test_two_jobs_of_one_jid(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        peer.push(JID)
        assert peer.call("CANCEL", {"jids": [JID, JID]})["cancelled"] == 2

    def test_the_lake_has_the_reason(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        peer.push(JID)
        peer.call("CANCEL", {"jids": [JID], "reason": "x" * 5_000})
        [row] = [row for row in rows_of(dispatcher.events, Payloads()) if row["event"] == "removed"]
        assert (row["why"], row["detail"]) == ("canceled", "x" * 1_000)
