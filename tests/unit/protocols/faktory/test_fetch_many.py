"""FETCHB: many jobs at once, longer waits, and leases of the worker's choice."""

from typing import Any

import pytest

from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Extra, Form, Links, ResquData, Spec, WorkqData
from crossdock.model.policies import Disposition, Policy
from crossdock.model.protocol_data import QlessData
from crossdock.model.states import State
from crossdock.protocols.faktory import fetch_many
from tests.support.conversation import ClockedFaktory
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> ExtendedPeer:
    return extended(dispatcher, wid="w")


def jids(found: list[dict[str, Any]]) -> list[str]:
    return [each["jid"] for each in found]


def push_many(peer: ExtendedPeer, count: int, **members: Any) -> None:
    some = [{"jid": f"job-{number:05}", "jobtype": "t", "args": [number]} | members for number in range(count)]
    assert peer.call("PUSHB", some) == {}


def test_it_leases_as_many_as_there_are(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    push_many(peer, 3)
    found = peer.fetch(2)
    assert jids(found) == ["job-00000", "job-00001"]
    assert jids(peer.fetch(2)) == ["job-00002"]
    assert peer.fetch(2) == []
    assert found[1] == {
        "retry": 25,
        "jid": "job-00001",
        "queue": "default",
        "jobtype": "t",
        "created_at": "2026-11-15T17:55:45Z",
        "enqueued_at": "2026-11-15T17:55:45Z",
        "args": [1],
        "attempt": 1,
        "origin": "faktory",
        "number": 2,
        "tags": [],
        "batch": "",
        "keep_result": False,
    }


def test_a_waiting_request_gets_a_job_at_once(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    assert peer.call("FETCHB", {"queues": ["default"], "count": 10, "wait_s": 60}) is None
    dispatcher.advance(59.0)
    push_many(extended(dispatcher), 3)
    assert jids(peer.pending()) == ["job-00000", "job-00001", "job-00002"]


def test_a_waiting_request_ends_with_nothing(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    assert peer.call("FETCHB", {"queues": ["default"], "wait_s": 45}) is None
    dispatcher.advance(44.0)
    assert peer.pending() is None
    dispatcher.advance(1.0)
    assert peer.pending() == []


def test_the_lease_lasts_as_long_as_asked(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    peer.push("12345678", reserve_for=3_600)
    peer.fetch(lease_s=5)
    dispatcher.advance(4.9)
    assert next(dispatcher.state.named("12345678")).state is State.LEASED
    dispatcher.advance(0.1)
    assert next(dispatcher.state.named("12345678")).state is State.RETRYING


def test_queues_in_order_and_at_random(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    push_many(peer, 40, queue="low")
    push_many(peer, 40, queue="high")
    assert {each["queue"] for each in peer.fetch(20, queues=["high", "low", "none"])} == {"high"}
    mixed = [each["queue"] for each in peer.fetch(40, queues=["high", "low", "low"], order="random")]
    assert set(mixed) == {"high", "low"}


def test_a_quiet_worker_gets_nothing(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    peer.push("12345678")
    peer.ask('BEAT {"wid":"w","current_state":"quiet"}')
    assert peer.fetch() == []
    assert peer.call("FETCHB", {"queues": ["default"], "wait_s": 5}) is None
    dispatcher.advance(5.0)
    assert peer.pending() == []


def test_a_paused_queue_gives_nothing(peer: ExtendedPeer) -> None:
    peer.push("12345678")
    peer.ask("QUEUE PAUSE default")
    assert peer.fetch() == []


def test_expired_jobs_are_passed_over(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    push_many(peer, 1_200, custom={"expires_in": 5})
    dispatcher.advance(6.0)
    assert peer.fetch(5) == []
    peer.push("12345678")
    assert jids(peer.fetch(5)) == ["12345678"]


def test_the_reply_is_bounded_by_bytes(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    push_many(peer, 5, args=["x" * 600_000])
    assert len(peer.fetch(5)) == 2


def test_the_reply_is_bounded_by_time(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    push_many(peer, 100)
    dispatcher.slowness = 0.004
    assert len(peer.fetch(100)) == 32


def test_jobs_of_other_protocols(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    complete = Policy(0, success=Disposition.COMPLETE)
    text = b'{"class":"Mail","args":{"to":1},"environment":{"LANG":"de"},"includePath":"app"}'
    for origin, jid, form, payload, policy, extra in (
        ("workq", "a", Form.RAW, b"\x00\xff", complete, Extra(protocol_data=WorkqData())),
        ("workq", "b", Form.RAW, b"text", Policy(0), Extra(links=Links(foreground=True))),
        ("qless", "c", Form.JSON, b'{"a":1}', complete, Extra(protocol_data=QlessData(), tags=("red", 7))),
        ("resqu", "d", Form.JSON, b'{"to":1}', Policy(0), Extra(protocol_data=ResquData(text, "s", "n"))),
        ("resqu", "e", Form.NONE, b"", Policy(0), Extra(protocol_data=ResquData(b'{"\xff":1}', "s", "n"))),
        ("masenko", "f", Form.NONE, b"", Policy(0), None),
    ):
        dispatcher.do(Enqueue(origin, [Spec(jid, "default", "kind", payload, form, 0, policy, 0.0, extra)]))
    found = {each["jid"]: each for each in peer.fetch(10)}
    assert {jid: (each["origin"], each["args"], each["keep_result"]) for jid, each in found.items()} == {
        "a": ("workq", [{"base64": "AP8="}], True),
        "b": ("workq", ["text"], True),
        "c": ("qless", [{"a": 1}], False),
        "d": ("resqu", [{"to": 1}], False),
        "e": ("resqu", [], False),
        "f": ("masenko", [], False),
    }
    assert found["c"]["tags"] == ["red", 7]
    assert found["d"]["resqu"]["environment"] == {"LANG": "de"}
    assert [jid for jid, each in found.items() if "resqu" in each] == ["d"]


def test_the_batch_is_shown(peer: ExtendedPeer) -> None:
    bid = peer.ask('BATCH NEW {"success":{"jobtype":"done","args":[]}}').split(b"\r\n")[1].decode()
    peer.push("12345678", custom={"bid": bid})
    assert peer.fetch()[0]["batch"] == bid


def test_a_defect_gives_the_jobs_back(
    dispatcher: PlainDispatcher, peer: ExtendedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_many(peer, 3)
    shown = fetch_many.fetched
    monkeypatch.setattr(fetch_many, "fetched", lambda job: shown(job) if job.number < 2 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        peer.fetch(3)
    assert {job.state for job in dispatcher.state.jobs.values()} == {State.READY}


def test_another_worker_cannot_settle_the_jobs(dispatcher: PlainDispatcher) -> None:
    protocol = ClockedFaktory(dispatcher)
    one, other = extended(dispatcher, protocol, "one"), extended(dispatcher, protocol, "other")
    one.push("12345678")
    one.fetch(lease_s=5)
    dispatcher.advance(60.0)  # it was retried
    one.ask('BEAT {"wid":"one"}')
    assert jids(other.fetch()) == ["12345678"]
    assert one.call("ACKB", [{"jid": "12345678"}]) == {"refused": {"12345678": "the lease has ended"}}
    assert other.call("ACKB", [{"jid": "12345678"}]) == {"refused": {}}
