"""qless and each other door (MODEL sections 2, 6 and 9): what comes by one is worked through the other."""

import json
from typing import Any

import pytest

from crossdock.model.states import State
from tests.support.floor import Floor

OTHERS = ["faktory", "masenko", "workq"]


@pytest.fixture
def floor() -> Floor:
    return Floor()


def alone(floor: Floor) -> Any:
    (job,) = floor.desk.memory.jobs.values()
    return job


@pytest.mark.parametrize(
    ("by", "sent", "shown"),
    [
        ("faktory", [1, "a"], [1, "a"]),
        ("workq", b"text", {"payload": "text"}),
        ("workq", b"\xff\0", {"payload": {"base64": "/wA="}}),
        ("masenko", {"a": 1}, {"a": 1}),
        ("masenko", None, {"payload": None}),
    ],
)
def test_payloads_shown_by_qless(floor: Floor, by: str, sent: Any, shown: Any) -> None:
    floor.peer(by).push("q", sent)
    got = floor.qless().fetch("q")
    assert got is not None and got.payload == shown


@pytest.mark.parametrize(
    ("through", "shown"), [("faktory", [{"a": 1}]), ("workq", b'{"a":1}'), ("masenko", {"a": 1})]
)
def test_payloads_of_qless(floor: Floor, through: str, shown: Any) -> None:
    floor.qless().push("q", {"a": 1})
    got = floor.peer(through).fetch("q")
    assert got is not None and got.payload == shown


@pytest.mark.parametrize("other", OTHERS)
def test_pushed_there_failed_here_and_settled_there(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    there.push("q", ["payload"])
    got = here.fetch("q")
    assert got is not None
    assert (alone(floor).lease.via, alone(floor).lease.worker) == ("qless", here.name)
    assert here.fail(got.ident, "no luck")
    floor.desk.advance(20)
    again = there.fetch("q")
    assert again is not None and alone(floor).failures == 1
    assert there.succeed(again.ident)
    assert here.look("q") == there.look("q") == 0


@pytest.mark.parametrize("other", OTHERS)
def test_put_here_failed_there_and_settled_here(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    here.push("q", ["payload"])
    got = there.fetch("q")
    assert got is not None
    assert there.fail(got.ident, "no luck")
    floor.desk.advance(20)
    again = here.fetch("q")
    assert again is not None
    assert here.succeed(again.ident)
    assert alone(floor).state is State.COMPLETE, "kept, as its own rules have it"


@pytest.mark.parametrize("other", OTHERS)
def test_what_waits_here_is_freed_by_a_success_there(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    there.push("first", ["a"])
    here.push("q", {}, depends=json.dumps([alone(floor).jid]))
    assert here.fetch("q") is None
    got = there.fetch("first")
    assert got is not None and there.succeed(got.ident)
    assert here.fetch("q") is not None


@pytest.mark.parametrize("other", OTHERS)
def test_no_caller_s_time_ends_a_lease_of_another_door(floor: Floor, other: str) -> None:
    there, here = floor.peer(other), floor.qless()
    there.push("q", ["a"])
    got = there.fetch("q")
    assert got is not None
    far = str(floor.desk.now.wall + 1e9)
    assert here._ask("FCALL", "qless", "0", "pop", far, "q", "w", "5") == "{}"
    assert here._ask("FCALL", "qless", "0", "peek", far, "q", "5") == "{}"
    assert alone(floor).lease.via == other
    assert there.succeed(got.ident)


@pytest.mark.parametrize("other", OTHERS)
def test_a_lost_worker_of_qless_is_noticed_by_the_server_s_clock(floor: Floor, other: str) -> None:
    """Warned first, and given to whoever asks after the grace period."""
    there, lost = floor.peer(other), floor.qless()
    lost.push("q", {"a": 1})
    assert lost.fetch("q") is not None
    floor.desk.advance(61)
    assert there.fetch("q") is None, "its worker is warned"
    floor.desk.advance(11)
    got = there.fetch("q")
    assert got is not None and there.succeed(got.ident)


def test_the_peer_of_the_other_name_may_not_settle(floor: Floor) -> None:
    first, second = floor.qless(), floor.qless()
    first.push("q", {})
    got = first.fetch("q")
    assert got is not None
    assert not second.succeed(got.ident)
    assert first.succeed(got.ident)


def test_a_connection_that_is_lost_with_a_job_costs_a_retry(floor: Floor) -> None:
    floor.qless().push("q", {"a": 1}, retry=1)
    for failures in (0, 1):
        there = floor.peer("masenko")
        assert there.fetch("q") is not None and alone(floor).failures == failures
        there.close()
    assert alone(floor).state is State.FAILED
