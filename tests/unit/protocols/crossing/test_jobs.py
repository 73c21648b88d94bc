"""A job that one protocol pushes can be worked through every other: its life, payload and names (model.md section 9).

Every protocol is a row and a column. A new protocol needs a peer and a column in `SHOWN`.
"""

import itertools
import json
from typing import Any

import pytest

from crossdock.model.states import State
from tests.support.all_protocols import AllProtocols
from tests.support.peer import Peer
from tests.support.peers import PEERS

PROTOCOLS = sorted(PEERS)

#: The payload that a protocol pushes, and how each protocol shows it.
SHOWN: list[tuple[str, Any, dict[str, Any]]] = [
    ("faktory", [1, "a b", {"x": None}], {
        "faktory": [1, "a b", {"x": None}], "workq": b'[1,"a b",{"x":null}]', "masenko": [1, "a b", {"x": None}],
        "qless": [1, "a b", {"x": None}],
    }),
    ("faktory", [], {"faktory": [], "workq": b"[]", "masenko": [], "qless": []}),
    ("workq", b"two words \xc3\xa9", {
        "faktory": ["two words é"], "workq": b"two words \xc3\xa9", "masenko": "two words é",
        "qless": {"payload": "two words é"},
    }),
    ("workq", b"", {"faktory": [""], "workq": b"", "masenko": "", "qless": {"payload": ""}}),
    ("workq", b"a\0\r\n<b>\xe2\x80\xa8", {
        "faktory": ["a\0\r\n<b>\u2028"], "workq": b"a\0\r\n<b>\xe2\x80\xa8", "masenko": "a\0\r\n<b>\u2028",
        "qless": {"payload": "a\0\r\n<b>\u2028"},
    }),
    ("workq", b"\xff\0", {
        "faktory": [{"base64": "/wA="}], "workq": b"\xff\0", "masenko": {"base64": "/wA="},
        "qless": {"payload": {"base64": "/wA="}},
    }),
    ("workq", b"[1,", {"faktory": ["[1,"], "workq": b"[1,", "masenko": "[1,", "qless": {"payload": "[1,"}}),
    ("masenko", {"a": [1, "<"]}, {
        "faktory": [{"a": [1, "<"]}], "workq": b'{"a":[1,"\\u003c"]}', "masenko": {"a": [1, "<"]},
        "qless": {"a": [1, "<"]},
    }),
    ("masenko", [1, 2], {"faktory": [1, 2], "workq": b"[1,2]", "masenko": [1, 2], "qless": [1, 2]}),
    ("masenko", "\ud800", {
        "faktory": ["\ud800"], "workq": b'"\\ud800"', "masenko": "\ud800", "qless": {"payload": "\ud800"},
    }),
    ("masenko", None, {"faktory": [None], "workq": b"null", "masenko": None, "qless": {"payload": None}}),
    ("qless", {"a": [1, "<"]}, {
        "faktory": [{"a": [1, "<"]}], "workq": b'{"a":[1,"<"]}', "masenko": {"a": [1, "<"]}, "qless": {"a": [1, "<"]},
    }),
    ("qless", [1, "é"], {
        "faktory": [1, "é"], "workq": b'[1,"\\u00e9"]', "masenko": [1, "é"], "qless": [1, "é"],
    }),
]  # fmt: skip


def alone(all_protocols: AllProtocols) -> Any:
    (job,) = all_protocols.dispatcher.state.jobs.values()
    return job


@pytest.mark.parametrize(("by", "sent", "shown"), SHOWN)
@pytest.mark.parametrize("through", PROTOCOLS)
def test_each_protocol_shows_the_payloads_of_the_others(
    all_protocols: AllProtocols, by: str, sent: Any, shown: dict[str, Any], through: str
) -> None:
    all_protocols.peer(by).push("q", sent)
    got = all_protocols.peer(through).fetch("q")
    assert got is not None and got.payload == shown[through]


@pytest.mark.parametrize("through", PROTOCOLS)
def test_a_payload_beyond_the_protocols_own_limit_is_handed_out(all_protocols: AllProtocols, through: str) -> None:
    text = "x" * 2_000_000
    all_protocols.peer("faktory").push("q", [text])
    got = all_protocols.peer(through).fetch("q")
    assert got is not None
    assert (json.loads(got.payload) if isinstance(got.payload, bytes) else got.payload) == [text]


@pytest.mark.parametrize(("by", "first", "second"), list(itertools.product(PROTOCOLS, repeat=3)))
def test_a_job_is_pushed_failed_retried_and_settled_through_different_protocols(
    all_protocols: AllProtocols, by: str, first: str, second: str
) -> None:
    """Pushed through one protocol, failed through another, and completed through a third."""
    all_protocols.peer(by).push("q", ["payload"])
    for through, failures in ((first, 0), (second, 1)):
        worker = all_protocols.peer(through)
        got = worker.fetch("q")
        assert got is not None
        job = alone(all_protocols)
        assert (job.state, job.lease.via, job.failures) == (State.LEASED, through, failures)
        if failures:
            assert worker.succeed(got.ident)
        else:
            assert worker.fail(got.ident, "no luck")
            assert alone(all_protocols).extra.error.message == ("" if through == "masenko" else "no luck")
            all_protocols.dispatcher.advance(20)
            # Masenko reports its own job as delayed if it had to wait for its time.
            seen = {"masenko": by != "masenko" or PEERS[first].says_when}
            assert all(all_protocols.peer(protocol).look("q") == seen.get(protocol, 1) for protocol in PROTOCOLS)
    jobs = all_protocols.dispatcher.state.jobs.values()
    assert [job.state for job in jobs] == ([State.COMPLETE] if PEERS[by].keeps else [])


@pytest.mark.parametrize(("by", "through"), list(itertools.product(PROTOCOLS, repeat=2)))
def test_an_id_shown_is_accepted_again_and_its_own_protocol_keeps_its_form(
    all_protocols: AllProtocols, by: str, through: str
) -> None:
    pusher, worker = all_protocols.peer(by), all_protocols.peer(through)
    known = pusher.push("q", ["a"])
    got = worker.fetch("q")
    assert got is not None
    job = alone(all_protocols)
    assert known == (str(job.number) if by == "masenko" else job.jid)
    if by == through:
        assert got.ident == known
    elif through in ("faktory", "qless"):
        assert got.ident == job.jid
    elif through == "masenko":
        assert got.ident == str(job.number)
    else:
        canonical = by == "masenko"  # whose jids are UUIDs
        assert got.ident == (job.jid if canonical else f"c205d0c0-0000-4000-8000-{job.number:012x}")
    assert worker.fail(got.ident)
    assert alone(all_protocols).state is not State.LEASED


def test_priorities_have_one_scale(all_protocols: AllProtocols) -> None:
    """Faktory's 1 to 9 are -4 to 4, Masenko's are 0, Workq's have 32 bits. Each protocol leases in that order."""
    faktory, workq = all_protocols.faktory(), all_protocols.workq()
    for priority in (2, 8):
        faktory.push("q", [f"faktory {priority}"], priority=priority)
    for priority in (-(2**31), 0, 2**31 - 1):
        workq.push("q", f"workq {priority}", flags=f"-priority={priority}")
    all_protocols.masenko().push("q", "masenko")
    through: list[Peer] = [all_protocols.peer(protocol) for protocol in (*PROTOCOLS, *PROTOCOLS)]
    found = [str(got.payload) for peer in through if (got := peer.fetch("q")) is not None]
    order = ["workq 2147483647", "faktory 8", "workq 0", "masenko", "faktory 2", "workq -2147483648"]
    assert len(found) == len(order)
    assert all(name in shown for name, shown in zip(order, found, strict=True))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_live_job_per_name_except_in_faktory(all_protocols: AllProtocols, protocol: str) -> None:
    """Workq refuses the name of a live job of any protocol, qless moves that job, and Faktory makes a second job, as
    upstream does."""
    jid = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
    all_protocols.peer("workq").push("q", b"", ident=jid)
    peer = all_protocols.peer(protocol)
    if protocol == "workq":
        with pytest.raises(Exception, match="Duplicate job"):
            peer.push("q", b"", ident=jid)
    else:
        peer.push("q", [], ident=jid)
    assert len(all_protocols.dispatcher.state.jobs) == (1 if protocol == "workq" or PEERS[protocol].replaces else 2)
