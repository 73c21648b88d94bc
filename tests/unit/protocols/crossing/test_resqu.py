"""Resqu and each other protocol: a job pushed through one is worked through the other (model.md sections 6, 9 and
10)."""

from typing import Any

import pytest

from crossdock.client.errors import Refused
from crossdock.model.states import State
from tests.support.all_protocols import AllProtocols
from tests.support.resqu_peer import P, ViaResqu

OTHERS = ["faktory", "masenko", "workq", "qless"]


def peer(all_protocols: AllProtocols, protocol: str) -> Any:
    return all_protocols.qless() if protocol == "qless" else all_protocols.peer(protocol)


def alone(all_protocols: AllProtocols) -> Any:
    (job,) = all_protocols.dispatcher.state.jobs.values()
    return job


@pytest.mark.parametrize(
    ("by", "sent", "shown"),
    [
        ("faktory", [1, "a"], [1, "a"]),
        ("workq", b"text", {"payload": "text"}),
        ("workq", b"\xff\0", {"payload": {"base64": "/wA="}}),
        ("masenko", {"a": 1}, {"a": 1}),
        ("masenko", None, {"payload": None}),
        ("qless", {"a": [1]}, {"a": [1]}),
    ],
)
def test_resqu_shows_payloads_of_other_protocols(all_protocols: AllProtocols, by: str, sent: Any, shown: Any) -> None:
    peer(all_protocols, by).push("q", sent)
    got = all_protocols.resqu().fetch("q")
    assert got is not None and got.payload == shown


@pytest.mark.parametrize(
    ("through", "shown"),
    [("faktory", [{"a": 1}]), ("workq", b'{"a":1}'), ("masenko", {"a": 1}), ("qless", {"a": 1})],
)
def test_other_protocols_show_payloads_of_resqu(all_protocols: AllProtocols, through: str, shown: Any) -> None:
    all_protocols.resqu().push("q", {"a": 1})
    got = peer(all_protocols, through).fetch("q")
    assert got is not None and got.payload == shown


@pytest.mark.parametrize("other", OTHERS)
def test_a_job_pushed_elsewhere_failed_in_resqu_and_settled_elsewhere(all_protocols: AllProtocols, other: str) -> None:
    there, here = peer(all_protocols, other), all_protocols.resqu()
    there.push("q", ["payload"])
    got = here.fetch("q")
    assert got is not None
    assert (alone(all_protocols).lease.via, alone(all_protocols).lease.worker) == ("resqu", here.name)
    assert here.fail(got.ident)
    all_protocols.dispatcher.advance(60)
    again = there.fetch("q")
    assert again is not None and alone(all_protocols).failures == 1
    assert there.succeed(again.ident)
    assert here.look("q") == there.look("q") == 0


@pytest.mark.parametrize("other", OTHERS)
def test_a_job_pushed_elsewhere_and_completed_in_resqu(all_protocols: AllProtocols, other: str) -> None:
    there, here = peer(all_protocols, other), all_protocols.resqu()
    there.push("q", ["payload"])
    got = here.fetch("q")
    assert got is not None and here.succeed(got.ident)
    assert all(job.state is State.COMPLETE for job in all_protocols.dispatcher.state.jobs.values())
    assert all_protocols.dispatcher.state.counters.processed == 1


@pytest.mark.parametrize("other", OTHERS)
def test_a_job_pushed_in_resqu_failed_elsewhere_and_completed_in_resqu(all_protocols: AllProtocols, other: str) -> None:
    there, here = peer(all_protocols, other), all_protocols.resqu()
    here.push("q", ["payload"], unique={"uid": "u"})
    for failures in (1, 2):
        got = there.fetch("q")
        assert got is not None and there.fail(got.ident)
        assert alone(all_protocols).failures == failures
        assert here.ask_redis("SETNX", f"{P}unique:u:state", "queued") == 0, "its uid is kept over retries"
    again = here.fetch("q")
    assert again is not None and here.succeed(again.ident)
    assert not all_protocols.dispatcher.state.jobs
    assert here.ask_redis("SETNX", f"{P}unique:u:state", "queued") == 1


@pytest.mark.parametrize("other", OTHERS)
def test_the_last_failure_elsewhere_releases_the_uid_and_the_deferred_job(
    all_protocols: AllProtocols, other: str
) -> None:
    there, here = peer(all_protocols, other), all_protocols.resqu()
    here.push("q", ["first"], unique={"uid": "u", "deferrableBy": 5}, failCount=2)
    got = there.fetch("q")
    assert got is not None
    defer(here, "q", "second", 5)
    assert there.fail(got.ident)
    assert here.look("q") == 0
    all_protocols.dispatcher.advance(6)
    again = there.fetch("q")
    assert again is not None and "second" in str(again.payload)


@pytest.mark.parametrize("other", OTHERS)
def test_a_job_of_a_lost_worker_is_not_lost(all_protocols: AllProtocols, other: str) -> None:
    there, here = peer(all_protocols, other), all_protocols.resqu()
    there.push("q", ["payload"])
    got = here.fetch("q")
    assert got is not None
    text = here.die()
    assert text is not None and got.ident in text
    all_protocols.dispatcher.advance(60)
    again = there.fetch("q")
    assert again is not None and there.succeed(again.ident)


def defer(peer: ViaResqu, name: str, word: str, by: int) -> None:
    text = (
        f'{{"class":"R","sourceId":"s","name":"{name}","args":["{word}"],"unique":{{"uid":"u","deferrableBy":{by}}}}}'
    )
    keys = (f"{P}unique:u:state", f"{P}unique:u:deferred")
    sha = "b41f445ce957025d83be8dbc13dfb3526aabfdc8"
    assert peer.ask_redis("EVALSHA", sha, "2", *keys, "running", text) == 1


def test_an_id_in_use_by_another_protocol_is_refused(all_protocols: AllProtocols) -> None:
    all_protocols.peer("faktory").push("q", [1], ident="taken-00001")
    with pytest.raises(Refused, match="'taken-00001' already exists"):
        all_protocols.resqu().push("q", [2], ident="taken-00001")


def test_a_final_failure_in_resqu_ends_a_faktory_job_by_its_own_policy(all_protocols: AllProtocols) -> None:
    all_protocols.peer("faktory").push("q", [1], retry=5)
    here = all_protocols.resqu()
    got = here.fetch("q")
    assert got is not None and here.fail(got.ident, final=True)
    assert alone(all_protocols).state is State.DEAD


def test_a_resqu_waiter_is_served_by_a_push_of_another_protocol(all_protocols: AllProtocols) -> None:
    here = all_protocols.resqu()
    wire: Any = here.wire
    words = ("BRPOPLPUSH", f"{P}static:queue:q", here.buffer, "3")
    wire.send(b"*4\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(word), word.encode()) for word in words))
    assert wire.connection.is_waiting
    all_protocols.peer("faktory").push("q", ["now"])
    assert not wire.connection.is_waiting
    assert b'"args":["now"]' in bytes(wire.connection.said)
