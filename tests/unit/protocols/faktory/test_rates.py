"""Rate limits of clients with extensions: the member `rate` of a job, and RATE SYNC."""

from typing import Any

import pytest

from crossdock.engine.records import rates
from crossdock.protocols.faktory.rates import RATES_AT_MOST
from tests.model import invariants
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> ExtendedPeer:
    return extended(dispatcher)


def sync(peer: ExtendedPeer, *limits: dict[str, Any], app: str = "shop") -> Any:
    return peer.call("RATE SYNC", {"app": app, "rates": limits})


def fetched(peer: ExtendedPeer) -> list[str]:
    return [job["jid"] for job in peer.fetch(10)]


ANN = {"name": "user:ann", "count": 1, "per_s": 10}


class TestJobs:
    def test_jobs_share_the_limit_of_their_name(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        for jid in ("ann-00001", "ann-00002"):
            assert peer.push(jid, rate=ANN) == "+OK"
        peer.push("other-001")
        assert fetched(peer) == ["ann-00001", "other-001"]
        invariants.check(dispatcher.state)
        dispatcher.advance(10.0)
        assert fetched(peer) == ["ann-00002"]

    def test_a_list_of_jobs_may_carry_one(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        bodies = [{"jid": f"ann-0000{at}", "jobtype": "t", "args": [], "rate": ANN} for at in range(3)]
        assert peer.call("PUSHB", bodies) == {}
        assert fetched(peer) == ["ann-00000"]

    def test_a_waiting_fetch_gets_the_job_when_a_token_is_there(
        self, dispatcher: PlainDispatcher, peer: ExtendedPeer
    ) -> None:
        for jid in ("ann-00001", "ann-00002"):
            peer.push(jid, rate=ANN)
        assert fetched(peer) == ["ann-00001"]
        request = {"queues": ["default"], "count": 10, "wait_s": 30, "lease_s": 60}
        assert peer.call("FETCHB", request) is None
        dispatcher.advance(9.9)
        assert peer.pending() is None
        dispatcher.advance(0.1)
        assert [job["jid"] for job in peer.pending()] == ["ann-00002"]

    def test_a_session_without_extensions_ignores_the_member(self, dispatcher: PlainDispatcher) -> None:
        plain = worker(dispatcher, ClockedFaktory(dispatcher), "w")
        body = '{"jid":"plain-0001","jobtype":"t","args":[],"rate":{"name":"n","count":1,"per_s":10}}'
        assert plain.ask(f"PUSH {body}") == b"+OK\r\n"
        assert next(dispatcher.state.named("plain-0001")).extra is None or not dispatcher.state.rates
        assert b"unknown" in plain.ask('RATE SYNC {"app":"a","rates":[]}').lower()

    @pytest.mark.parametrize(
        ("wrong", "text"),
        [
            ({"name": "", "count": 1, "per_s": 1}, "rate.name must have 1 to 255 bytes"),
            ({"name": "n", "count": 0, "per_s": 1}, "rate.count must be from 1 to 1000000"),
            ({"name": "n", "count": 1, "per_s": 0}, "rate.per_s must be a number of seconds from 0.001 to 2678400"),
            ({"name": "n", "count": 1.5, "per_s": 1}, "Expected `int`, got `float` - at `$.rate.count`"),
            ({"name": "n", "count": 1}, "Object missing required field `per_s` - at `$.rate`"),
            ("10/m", "Expected `object | null`, got `str` - at `$.rate`"),
        ],
    )
    def test_an_error_names_the_member(self, peer: ExtendedPeer, wrong: object, text: str) -> None:
        assert text in str(peer.push("wrong-001", rate=wrong))

    def test_a_held_job_can_be_cancelled(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        for jid in ("ann-00001", "ann-00002"):
            peer.push(jid, rate=ANN)
        assert fetched(peer) == ["ann-00001"]
        assert peer.call("RESULT", {"jid": "ann-00002", "wait_s": 0})["state"] == "waiting"
        assert peer.call("CANCEL", {"jids": ["ann-00002"]})["cancelled"] == 1
        invariants.check(dispatcher.state)


class TestSync:
    def test_an_app_limits_its_kinds_and_queues(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        limits = ({"kind": "t", "count": 1, "per_s": 10}, {"queue": "default", "count": 3, "per_s": 60.5})
        assert sync(peer, *limits) == "+OK"
        for at in range(3):
            peer.push(f"job-0000{at}")
        assert fetched(peer) == ["job-00000"]
        rows = ControlPeer(dispatcher).ask("rate_limits")["rate_limits"]
        assert [(row["source"], row["rate"], row["queue"], row["kind"], row["allows"]) for row in rows] == [
            ("app:shop", "t", None, "t", "1 job per 10 s"),
            ("app:shop", "default", "default", None, "3 jobs per 60.5 s"),
        ]
        assert sync(peer) == "+OK"
        dispatcher.advance(0.0)
        assert fetched(peer) == ["job-00001", "job-00002"]

    def test_unchanged_limits_write_nothing_and_keep_their_tokens(
        self, dispatcher: PlainDispatcher, peer: ExtendedPeer
    ) -> None:
        sync(peer, {"kind": "t", "count": 1, "per_s": 10})
        peer.push("job-00001")
        assert fetched(peer) == ["job-00001"]
        before = len(dispatcher.events)
        sync(peer, {"kind": "t", "count": 1, "per_s": 10})
        assert len(dispatcher.events) == before
        peer.push("job-00002")
        assert fetched(peer) == []

    def test_apps_do_not_replace_each_others_limits(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        sync(peer, {"kind": "t", "count": 1, "per_s": 10}, app="one")
        sync(peer, {"kind": "t", "count": 5, "per_s": 10}, app="two")
        sync(peer, app="two")
        assert len(dispatcher.state.rates) == 1

    @pytest.mark.parametrize(
        ("wrong", "text"),
        [
            ({"count": 1, "per_s": 1}, "each of the rates must have either kind or queue"),
            ({"kind": "a", "queue": "b", "count": 1, "per_s": 1}, "each of the rates must have either kind or queue"),
            ({"kind": "", "count": 1, "per_s": 1}, "the kind of a rate must have 1 to 255 bytes"),
            ({"kind": "a", "count": 0, "per_s": 1}, "the rate of kind a: count must be from 1 to 1000000"),
            ({"queue": "a", "count": 1, "per_s": 1e9}, "the rate of queue a: per_s must be a number of seconds"),
            ({"kind": "a", "count": "1", "per_s": 1}, "Expected `int`, got `str` - at `$.rates[0].count`"),
        ],
    )
    def test_an_error_names_the_limit(self, peer: ExtendedPeer, wrong: dict[str, Any], text: str) -> None:
        assert text in str(sync(peer, wrong))

    def test_other_requests_are_refused(self, peer: ExtendedPeer) -> None:
        one = {"kind": "a", "count": 1, "per_s": 1}
        assert "kind a has two rates" in str(sync(peer, one, one))
        assert "app must have 1 to 64 letters" in str(sync(peer, app=""))
        assert "invalid RATE: write RATE SYNC" in str(peer.call("RATE LIST", {}))
        many = [{"kind": f"k{at}", "count": 1, "per_s": 1} for at in range(RATES_AT_MOST + 1)]
        assert "Expected `array` of length <= 1000" in str(sync(peer, *many))

    def test_the_limits_of_all_apps_are_bounded(self, peer: ExtendedPeer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rates, "RATES_AT_MOST", 1)
        assert sync(peer, {"kind": "a", "count": 1, "per_s": 1}) == "+OK"
        assert "too many rate limits" in str(sync(peer, {"kind": "b", "count": 1, "per_s": 1}, app="other"))
