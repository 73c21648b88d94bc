"""Recurring jobs on the control door: listed, made, changed, removed; what they make is anybody's to work."""

from typing import Any

import pytest

from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer


@pytest.fixture
def peer(all_protocols: AllProtocols) -> ControlPeer:
    return ControlPeer(all_protocols.dispatcher)


def recur(all_protocols: AllProtocols, jid: str, *more: object) -> None:
    all_protocols.qless().call("recur", "q", jid, "K", '{"a": 1}', "interval", 60, 0, *more)


def only(peer: ControlPeer, jid: str) -> dict[str, Any]:
    (row,) = peer.ask("recurring", id=jid)["recurring"]
    return dict(row)


def test_those_of_qless_are_listed(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    for jid in ("b", "a", "c"):
        recur(all_protocols, jid, "tags", '["x", 5]', "priority", 3, "retries", 2, "backlog", 4)
    assert [row["jid"] for row in peer.all("recurring", limit=2)] == ["a", "b", "c"]
    row = only(peer, "a")
    told = {"queue": "q", "kind": "K", "interval_s": 60, "priority": 3, "retries": 2, "backlog": 4, "tags": ["x", "5"]}
    assert {name: row[name] for name in told} == told
    assert (row["payload"], row["payload_bytes"], row["made"], row["next_s"]) == ('{"a": 1}', 8, 0, 0.0)
    assert peer.ask("recurring", id="nobody") == {"error": "no recurring job nobody is here"}


def test_a_recurring_job_is_made_and_worked_through_another_protocol(
    all_protocols: AllProtocols, peer: ControlPeer
) -> None:
    made = peer.ask(
        "recur", id="sweep", queue="q", kind="K", interval_s=60, offset_s=30, payload={"deep": [1]}, tags=["x"]
    )
    assert (made["made"], made["recurring"]["next_s"], made["recurring"]["retries"]) == (True, 30.0, 5)
    worker = all_protocols.faktory()
    all_protocols.dispatcher.advance(31)
    got = worker.fetch("q")
    assert got is not None and (got.ident, got.payload) == ("sweep-1", [{"deep": [1]}])
    assert worker.succeed(got.ident)
    assert only(peer, "sweep")["made"] == 1
    assert all_protocols.qless().call("recur.get", "sweep") is not None


def test_what_is_given_is_changed_and_the_rest_stays(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    recur(all_protocols, "a", "priority", 3, "tags", '["x"]')
    before = only(peer, "a")
    assert peer.ask("recur", id="a") == {"made": False, "recurring": before}
    changed = peer.ask("recur", id="a", interval_s=90, priority=1.5, queue="other")["recurring"]
    assert (changed["interval_s"], changed["priority"], changed["queue"], changed["next_s"]) == (90, 1.5, "other", 30.0)
    assert {name: changed[name] for name in ("kind", "payload", "tags")} == {
        "kind": "K",
        "payload": '{"a": 1}',
        "tags": ["x"],
    }
    assert peer.ask("recur", id="a", tags=[], payload=None)["recurring"]["tags"] == []
    assert only(peer, "a")["payload"] == "null"
    all_protocols.dispatcher.advance(31)
    assert all_protocols.faktory().fetch("q") is None
    assert all_protocols.faktory().fetch("other") is not None


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"id": "new"}, "no recurring job new is here; to make it, give queue, kind and interval_s"),
        ({"id": "new", "queue": "q", "kind": "k"}, "no recurring job new is here"),
        ({"id": "a", "offset_s": 5}, "recurring job a is here already: offset_s is for a new one"),
        ({"id": "a", "interval_s": 0}, "recur: Expected `float` > 0.0"),
        ({"id": "a", "interval_s": 1e300}, "recur: Expected `float` <= 1000000000000.0"),
        ({"id": "a", "queue": ""}, "a name has 1 to 255 bytes"),
        ({"id": "", "queue": "q", "kind": "k", "interval_s": 1}, "a name has 1 to 255 bytes"),
        ({"id": "a", "retries": -1}, "recur: Expected `int` >= 0"),
        ({"id": "a", "priority": 1e300}, "recur: Expected `float` <= "),
    ],
)
def test_what_is_wrong_changes_nothing(
    all_protocols: AllProtocols, peer: ControlPeer, fields: dict[str, Any], sentence: str
) -> None:
    recur(all_protocols, "a")
    before = dict(all_protocols.dispatcher.state.intervals)
    assert peer.ask("recur", **fields)["error"].startswith(sentence)
    assert all_protocols.dispatcher.state.intervals == before


def test_one_is_removed_and_its_jobs_stay(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    recur(all_protocols, "a")
    assert all_protocols.qless().fetch("q") is not None
    assert peer.ask("unrecur", ids=["a", "nobody"]) == {"done": ["a"], "unknown": ["nobody"]}
    all_protocols.dispatcher.advance(600)
    assert list(all_protocols.dispatcher.state.jids) == ["a-1"]
    assert "length >= 1" in peer.ask("unrecur", ids=[])["error"]
