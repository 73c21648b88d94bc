"""qless schedules are listed, added, edited, removed and run, and any worker can lease their jobs."""

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
    return dict(peer.ask("schedule", name=jid)["schedule"])


def test_qless_schedules_are_listed(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    for jid in ("b", "a", "c"):
        recur(all_protocols, jid, "tags", '["x", 5]', "priority", 3, "retries", 2, "backlog", 4)
    assert [row["name"] for row in peer.all("schedules", limit=2)] == ["a", "b", "c"]
    row = only(peer, "a")
    told = {"queue": "q", "kind": "K", "interval_s": 60, "priority": 3, "retries": 2, "backlog": 4, "tags": ["x", "5"]}
    assert {name: row[name] for name in told} == told
    assert (row["payload"], row["payload_bytes"], row["pushed"], row["next_s"]) == ('{"a": 1}', 8, 0, 0.0)
    assert peer.ask("schedule", name="absent") == {"error": "schedule absent not found"}


def test_a_new_schedule_pushes_jobs_that_other_protocols_lease(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    start = all_protocols.dispatcher.now.wall + 30
    made = peer.ask(
        "schedule-add", name="sweep", queue="q", kind="K", every=60, start=start, payload={"deep": [1]}, tags=["x"]
    )["schedule"]
    assert (made["next_s"], made["retries"]) == (30.0, 5)
    worker = all_protocols.faktory()
    all_protocols.dispatcher.advance(31)
    got = worker.fetch("q")
    assert got is not None and (got.ident, got.payload) == ("sweep-1", [{"deep": [1]}])
    assert worker.succeed(got.ident)
    assert only(peer, "sweep")["pushed"] == 1
    assert all_protocols.qless().call("recur.get", "sweep") is not None


def test_an_edit_changes_only_the_given_fields(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    recur(all_protocols, "a", "priority", 3, "tags", '["x"]')
    before = only(peer, "a")
    assert peer.ask("schedule-edit", name="a") == {"schedule": before, "done": 0}
    changed = peer.ask("schedule-edit", name="a", every=90, priority=1.5, queue="other")["schedule"]
    assert (changed["interval_s"], changed["priority"], changed["queue"], changed["next_s"]) == (90, 1.5, "other", 30.0)
    assert {name: changed[name] for name in ("kind", "payload", "tags")} == {
        "kind": "K",
        "payload": '{"a": 1}',
        "tags": ["x"],
    }
    assert peer.ask("schedule-edit", name="a", tags=[], payload=None)["schedule"]["tags"] == []
    assert only(peer, "a")["payload"] == "null"
    all_protocols.dispatcher.advance(31)
    assert all_protocols.faktory().fetch("q") is None
    assert all_protocols.faktory().fetch("other") is not None


@pytest.mark.parametrize(
    ("do", "fields", "sentence"),
    [
        ("edit", {"name": "new"}, "schedule new not found"),
        ("add", {"name": "new"}, "a new schedule needs every and kind"),
        ("add", {"name": "new", "every": 5, "kind": "k"}, "a new qless schedule needs queue"),
        ("add", {"name": "a", "queue": "q", "kind": "k", "every": 5}, "schedule a exists already"),
        ("add", {"name": "new", "queue": "q", "kind": "k", "every": "P1M"}, "qless has no calendar intervals"),
        ("edit", {"name": "a", "start": 5}, "start is only for a new qless schedule"),
        ("edit", {"name": "a", "uid": "u"}, "uid does not apply to qless schedules"),
        ("edit", {"name": "a", "every": 0}, "schedule-edit: Expected `float` > 0.0"),
        ("edit", {"name": "a", "every": 1e300}, "schedule-edit: Expected `float` <= 1000000000000.0"),
        ("edit", {"name": "a", "queue": ""}, "a name must have 1 to 255 bytes"),
        ("add", {"name": "", "queue": "q", "kind": "k", "every": 1}, "a name must have 1 to 255 bytes"),
        ("edit", {"name": "a", "retries": -1}, "schedule-edit: Expected `int` >= 0"),
        ("edit", {"name": "a", "priority": 1e300}, "schedule-edit: Expected `float` <= "),
    ],
)
def test_an_invalid_request_changes_nothing(
    all_protocols: AllProtocols, peer: ControlPeer, do: str, fields: dict[str, Any], sentence: str
) -> None:
    recur(all_protocols, "a")
    before = dict(all_protocols.dispatcher.state.qless.intervals)
    assert peer.ask(f"schedule-{do}", **fields)["error"].startswith(sentence)
    assert all_protocols.dispatcher.state.qless.intervals == before


def test_a_removed_schedule_leaves_its_jobs(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    recur(all_protocols, "a")
    assert all_protocols.qless().fetch("q") is not None
    assert peer.ask("schedule-remove", names=["a", "absent"]) == {
        "done": ["a"], "unknown": ["absent"], "refused": [],
    }  # fmt: skip
    all_protocols.dispatcher.advance(600)
    assert list(all_protocols.dispatcher.state.jids) == ["a-1"]
    assert "length >= 1" in peer.ask("schedule-remove", names=[])["error"]


def test_a_run_pushes_one_job_now_and_leaves_the_next_run(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    recur(all_protocols, "a", "tags", '["x"]', "priority", 3, "retries", 2)
    before = only(peer, "a")
    made = peer.ask("schedule-run", name="a")
    assert (made["queue"], made["kind"]) == ("q", "K")
    job = peer.ask("job", id=made["jid"])["job"]
    assert (job["state"], job["priority"], job["tags"], job["policy"]["max_failures"]) == ("ready", 3, ["x"], 2)
    assert only(peer, "a") == before
    assert peer.ask("schedule-run", name="b") == {"error": "schedule b not found"}
