"""qless and each other protocol: what the tests over all protocols do not cover (model.md sections 2, 6 and 9)."""

import json
from typing import Any

import pytest

from crossdock.client.errors import Refused
from crossdock.model.states import State
from tests.support.all_protocols import AllProtocols

OTHERS = ["faktory", "masenko", "workq"]


def alone(all_protocols: AllProtocols) -> Any:
    (job,) = all_protocols.dispatcher.state.jobs.values()
    return job


@pytest.mark.parametrize("other", OTHERS)
def test_a_qless_dependent_is_freed_by_a_success_through_another_protocol(
    all_protocols: AllProtocols, other: str
) -> None:
    there, here = all_protocols.peer(other), all_protocols.qless()
    there.push("first", ["a"])
    here.push("q", {}, depends=json.dumps([alone(all_protocols).jid]))
    assert here.fetch("q") is None
    got = there.fetch("first")
    assert got is not None and there.succeed(got.ident)
    assert here.fetch("q") is not None


@pytest.mark.parametrize("other", OTHERS)
def test_a_client_clock_does_not_end_a_lease_of_another_protocol(all_protocols: AllProtocols, other: str) -> None:
    there, here = all_protocols.peer(other), all_protocols.qless()
    there.push("q", ["a"])
    got = there.fetch("q")
    assert got is not None
    far = str(all_protocols.dispatcher.now.wall + 1e9)
    assert here.request("FCALL", "qless", "0", "pop", far, "q", "w", "5") == "{}"
    assert here.request("FCALL", "qless", "0", "peek", far, "q", "5") == "{}"
    assert alone(all_protocols).lease.via == other
    assert there.succeed(got.ident)


@pytest.mark.parametrize(
    "call",
    [
        ("complete", "{jid}", "w", "q", "{}"),
        ("complete", "{jid}", "w", "q", "{}", "next", "other"),
        ("fail", "{jid}", "w", "group", "message", "{}"),
        ("retry", "{jid}", "q", "w", "0"),
        ("heartbeat", "{jid}", "w", "{}"),
    ],
)
def test_a_qless_worker_cannot_settle_or_renew_the_lease_of_a_faktory_worker_of_the_same_name(
    all_protocols: AllProtocols, call: tuple[str, ...]
) -> None:
    there, here = all_protocols.peer("faktory", "w"), all_protocols.qless()
    there.push("q", ["a"])
    got = there.fetch("q")
    assert got is not None
    before = alone(all_protocols).lease
    with pytest.raises(Refused, match="another worker: w "):
        here.call(*(got.ident if word == "{jid}" else word for word in call))
    assert alone(all_protocols).lease == before and before.beats == 0
    assert there.succeed(got.ident)


@pytest.mark.parametrize("other", OTHERS)
def test_a_lost_qless_worker_is_detected_by_the_servers_clock(all_protocols: AllProtocols, other: str) -> None:
    """The worker is warned first. After the grace period the next client that asks gets the job."""
    there, lost = all_protocols.peer(other), all_protocols.qless()
    lost.push("q", {"a": 1})
    assert lost.fetch("q") is not None
    all_protocols.dispatcher.advance(61)
    assert there.fetch("q") is None, "its worker is warned"
    all_protocols.dispatcher.advance(11)
    got = there.fetch("q")
    assert got is not None and there.succeed(got.ident)


@pytest.mark.parametrize("sent", [b"text", b"\xff\0", b'{"a" : 1}', b""])
def test_unchanged_data_of_a_qless_worker_keeps_the_payload_byte_for_byte(
    all_protocols: AllProtocols, sent: bytes
) -> None:
    """Workers send all data with each heartbeat, failure and completion."""
    there, here = all_protocols.workq(), all_protocols.qless()
    there.push("q", sent)
    got = here.fetch("q")
    assert got is not None
    data = json.dumps(got.payload, indent=1)
    here.call("heartbeat", got.ident, here.name, data)
    assert here.fail(got.ident)
    again = there.fetch("q")
    assert again is not None and again.payload == sent
    assert there.fail(again.ident)
    got = here.fetch("q")
    assert got is not None
    here.call("heartbeat", got.ident, here.name, '{"other": 1}')
    assert alone(all_protocols).payload == b'{"other": 1}', "changed data changes the payload"


def test_data_of_very_many_parts_is_compared_as_text(all_protocols: AllProtocols) -> None:
    there, here = all_protocols.faktory(), all_protocols.qless()
    sent = [{"a": "x, y", "b": [n]} for n in range(60_000)]
    there.push("q", sent)
    before = alone(all_protocols).payload
    got = here.fetch("q")
    assert got is not None and got.payload == sent
    here.call("heartbeat", got.ident, here.name, json.dumps(sent, indent=1))
    assert alone(all_protocols).payload is before
    here.call("heartbeat", got.ident, here.name, json.dumps(sent[1:]))
    assert json.loads(alone(all_protocols).payload) == sent[1:]


@pytest.mark.parametrize("other", OTHERS)
def test_a_qless_job_is_leased_through_another_protocol_once_its_dependency_is_met(
    all_protocols: AllProtocols, other: str
) -> None:
    """A chain over all protocols: each job depends on one that another protocol settles."""
    here, there = all_protocols.qless(), all_protocols.peer(other)
    here.push("q", {"n": 1}, ident="first")
    here.push("q", {"n": 2}, ident="second", depends='["first"]')
    here.push("q", {"n": 3}, ident="third", depends='["first", "second"]')
    for left in (2, 1, 0):
        got = there.fetch("q")
        assert got is not None
        assert there.fetch("q") is None
        assert there.succeed(got.ident)
        assert sum(job.state is State.BLOCKED for job in all_protocols.dispatcher.state.jobs.values()) == max(
            0, left - 1
        )


def test_a_recurring_job_spawned_by_a_lease_of_another_protocol_can_be_settled_there(
    all_protocols: AllProtocols,
) -> None:
    """Workq shows it under an ID that is valid there."""
    here, there = all_protocols.qless(), all_protocols.workq()
    here.call("recur", "q", "often", "k", "{}", "interval", "60", "0")
    got = there.fetch("q")
    assert got is not None and there.succeed(got.ident)
    assert alone(all_protocols).state is State.COMPLETE


LENIENT = '{"a":0x10}'


@pytest.mark.parametrize("way", ["complete", "heartbeat", "fail"])
@pytest.mark.parametrize("before", ["{}", LENIENT])
def test_data_that_only_the_scripts_accept_as_json_is_a_string_in_other_protocols(
    all_protocols: AllProtocols, way: str, before: str
) -> None:
    """Whichever command set the job's data. JSON that replaces it is JSON."""
    here, there = all_protocols.qless(), all_protocols.peer("faktory")
    for data, shown in ((LENIENT, [LENIENT]), ('{"a":16}', [{"a": 16}])):
        jid = here.call("put", "w", "q", f"{way}-{len(data)}", "T", before, "0")
        assert here.call("pop", "q", "w", "1") != "{}"
        if way == "complete":
            here.call("complete", jid, "w", "q", data, "next", "r")
        elif way == "heartbeat":
            here.call("heartbeat", jid, "w", data)
            here.call("timeout", jid)
        else:
            here.call("fail", jid, "w", "group", "message", data)
            here.call("unfail", "r", "group", "1")
        got = there.fetch("r" if way != "heartbeat" else "q")
        assert got is not None and got.payload == shown
