"""A job that comes by one door is worked through the others (MODEL section 9): its life, its payload, its names.

Every door is a row and a column: a further one is one more peer, and its column in `SHOWN`.
"""

import itertools
import json
from typing import Any

import pytest

from crossdock.model.states import State
from tests.support.floor import Floor
from tests.support.peer import Peer
from tests.support.peers import PEERS

DOORS = sorted(PEERS)

#: What is pushed by a door, and how each door hands it out.
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


def alone(floor: Floor) -> Any:
    (job,) = floor.dispatcher.state.jobs.values()
    return job


@pytest.mark.parametrize(("by", "sent", "shown"), SHOWN)
@pytest.mark.parametrize("through", DOORS)
def test_payloads(floor: Floor, by: str, sent: Any, shown: dict[str, Any], through: str) -> None:
    floor.peer(by).push("q", sent)
    got = floor.peer(through).fetch("q")
    assert got is not None and got.payload == shown[through]


@pytest.mark.parametrize("through", DOORS)
def test_a_payload_beyond_the_protocols_own_limit_is_handed_out(floor: Floor, through: str) -> None:
    text = "x" * 2_000_000
    floor.peer("faktory").push("q", [text])
    got = floor.peer(through).fetch("q")
    assert got is not None
    assert (json.loads(got.payload) if isinstance(got.payload, bytes) else got.payload) == [text]


@pytest.mark.parametrize(("by", "first", "second"), list(itertools.product(DOORS, repeat=3)))
def test_pushed_failed_retried_and_settled(floor: Floor, by: str, first: str, second: str) -> None:
    """Pushed by one door, failed through another, and done through a third."""
    floor.peer(by).push("q", ["payload"])
    for through, failures in ((first, 0), (second, 1)):
        worker = floor.peer(through)
        got = worker.fetch("q")
        assert got is not None
        job = alone(floor)
        assert (job.state, job.lease.via, job.failures) == (State.LEASED, through, failures)
        if failures:
            assert worker.succeed(got.ident)
        else:
            assert worker.fail(got.ident, "no luck")
            assert alone(floor).extra.error.message == ("" if through == "masenko" else "no luck")
            floor.dispatcher.advance(20)
            # To Masenko one of its own that had to wait for its time counts as delayed.
            seen = {"masenko": by != "masenko" or PEERS[first].says_when}
            assert all(floor.peer(door).look("q") == seen.get(door, 1) for door in DOORS)
    jobs = floor.dispatcher.state.jobs.values()
    assert [job.state for job in jobs] == ([State.COMPLETE] if PEERS[by].keeps else [])


@pytest.mark.parametrize(("by", "through"), list(itertools.product(DOORS, repeat=2)))
def test_an_id_shown_is_accepted_again_and_its_own_protocol_keeps_its_form(floor: Floor, by: str, through: str) -> None:
    pusher, worker = floor.peer(by), floor.peer(through)
    known = pusher.push("q", ["a"])
    got = worker.fetch("q")
    assert got is not None
    job = alone(floor)
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
    assert alone(floor).state is not State.LEASED


def test_priorities_are_one_scale(floor: Floor) -> None:
    """Faktory's 1 to 9 are -4 to 4, Masenko's all 0, Workq's any of 32 bits; each door leases in that order."""
    faktory, workq = floor.faktory(), floor.workq()
    for priority in (2, 8):
        faktory.push("q", [f"faktory {priority}"], priority=priority)
    for priority in (-(2**31), 0, 2**31 - 1):
        workq.push("q", f"workq {priority}", flags=f"-priority={priority}")
    floor.masenko().push("q", "masenko")
    through: list[Peer] = [floor.peer(door) for door in (*DOORS, *DOORS)]
    found = [str(got.payload) for peer in through if (got := peer.fetch("q")) is not None]
    order = ["workq 2147483647", "faktory 8", "workq 0", "masenko", "faktory 2", "workq -2147483648"]
    assert len(found) == len(order)
    assert all(name in shown for name, shown in zip(order, found, strict=True))


@pytest.mark.parametrize("door", DOORS)
def test_one_live_job_a_name_but_for_faktory(floor: Floor, door: str) -> None:
    """A name that is alive by whatever door is refused by Workq, and is moved by qless; Faktory makes a second job, as
    upstream does."""
    jid = "61a444a0-6128-41c0-8078-cc757d3bd2d8"
    floor.peer("workq").push("q", b"", ident=jid)
    peer = floor.peer(door)
    if door == "workq":
        with pytest.raises(Exception, match="Duplicate job"):
            peer.push("q", b"", ident=jid)
    else:
        peer.push("q", [], ident=jid)
    assert len(floor.dispatcher.state.jobs) == (1 if door == "workq" or PEERS[door].replaces else 2)
