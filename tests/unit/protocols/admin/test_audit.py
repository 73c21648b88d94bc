"""The audit trail: what each request records, and its pages."""

from typing import Any, get_args

import pytest

from crossdock.model.commands.qless import Watch
from crossdock.model.events import Audited
from crossdock.protocols.admin import actions, audit, messages
from crossdock.protocols.worker_registry import WorkerRegistry
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import five_jobs, flood, push

ANNA = {"user": "anna", "address": "192.0.2.7"}


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def entries(peer: ControlPeer) -> list[tuple[str, str, int]]:
    return [(row["action"], row["target"], row["count"]) for row in peer.ask("audit")["audit"]]


def test_an_entry_names_the_operator_and_the_change(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    push(client, "job-00001")
    peer.ask("pause", names=["mail"], reason="the mail server is down", by=ANNA)
    assert peer.ask("audit") == {
        "audit": [
            {
                "at": "2026-11-15T17:55:45Z",
                "user": "anna",
                "address": "192.0.2.7",
                "via": "http",
                "action": "pause",
                "target": 'names:mail reason:"the mail server is down"',
                "count": 1,
            }
        ],
        "after": None,
    }


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        (None, (None, "local", "admin")),
        ({"user": "ben"}, ("ben", "local", "admin")),
        ({"user": "ben", "address": "::1"}, ("ben", "::1", "http")),
    ],
)
def test_an_address_other_than_local_came_by_http(
    client: Conversation, peer: ControlPeer, by: dict[str, str] | None, shown: tuple[str | None, str, str]
) -> None:
    push(client, "job-00001")
    peer.ask("delete", ids=["job-00001"], **({} if by is None else {"by": by}))
    (row,) = peer.ask("audit")["audit"]
    assert (row["user"], row["address"], row["via"]) == shown


@pytest.mark.parametrize(
    ("do", "fields", "target", "count"),
    [
        ("retry", {"states": ["dead"]}, "states:dead", 1),
        ("retry", {"ids": ["job-00003", 5]}, "jobs:3,5", 2),
        ("kill", {"queue": "mail", "kind": "send"}, "queue:mail kind:send", 3),
        ("delete", {"ids": ["job-00002"]}, "jobs:2", 1),
        ("delete", {"all": True}, "all", 4),
        ("move", {"states": ["ready", "scheduled"], "to": "a queue"}, 'states:ready,scheduled to:"a queue"', 2),
        ("release", {"ids": ["job-00001"], "force": True}, "jobs:1 force", 1),
        ("pause", {"names": ["mail", "absent"]}, "names:mail,absent", 1),
        ("quiet", {"all": True}, "all", 1),
        ("terminate", {"names": ["w1"]}, "names:w1", 1),
        ("tag", {"id": "job-00001", "tags": ["a", "b"]}, "jobs:1 tags:a,b", 2),
        ("track", {"ids": ["job-00001", "job-00002"]}, "jobs:1,2", 2),
        ("schedule-add", {"name": "s", "queue": "q", "kind": "K", "every": 60, "payload": {"secret": 1}},
         "name:s every:60 kind:K queue:q source:qless", 1),
        ("erase", {"jids": ["job-00001"], "forget": ["anna"]}, "jids:1 forget:1", 1),
        ("push", {"queue": "q", "kind": "K", "args": ["secret"], "jid": "anna@example.org", "custom": {"secret": 1}},
         "jobs:6 queue:q kind:K", 1),
    ],
)  # fmt: skip
def test_each_change_is_recorded_once(
    client: Conversation, peer: ControlPeer, do: str, fields: dict[str, Any], target: str, count: int
) -> None:
    five_jobs(client)
    assert "error" not in peer.ask(do, **fields)
    assert entries(peer) == [(do, target, count)]


def test_changes_of_things_that_exist_are_recorded(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    peer.ask("pause", all=True)
    peer.ask("resume", names=["mail"])
    peer.ask("tag", id=1, tags=["a"])
    peer.ask("untag", id=1, tags=["a"])
    peer.ask("track", ids=[1])
    peer.ask("untrack", ids=["job-00001"])
    peer.ask("schedule-add", name="s", queue="q", kind="K", every=60)
    peer.ask("schedule-edit", name="s", priority=3)
    peer.ask("schedule-run", name="s")
    peer.ask("schedule-remove", names=["s"])
    assert entries(peer)[::-1] == [
        ("pause", "all", 1),
        ("resume", "names:mail", 1),
        ("tag", "jobs:1 tags:a", 1),
        ("untag", "jobs:1 tags:a", 1),
        ("track", "jobs:1", 1),
        ("untrack", "jobs:1", 1),
        ("schedule-add", "name:s every:60 kind:K queue:q source:qless", 1),
        ("schedule-edit", "name:s priority:3", 1),
        ("schedule-run", "name:s", 1),
        ("schedule-remove", "names:s", 1),
    ]


def test_a_request_that_changes_nothing_is_not_recorded(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    peer.ask("schedule-add", name="s", queue="q", kind="K", every=60)
    for do, fields in (
        ("retry", {"ids": ["absent"]}),
        ("delete", {"queue": "absent"}),
        ("kill", {"all": True, "dry_run": True}),
        ("resume", {"names": ["mail"]}),
        ("quiet", {"names": ["absent"]}),
        ("untag", {"id": 1, "tags": ["absent"]}),
        ("tag", {"id": "absent", "tags": ["a"]}),
        ("untrack", {"ids": [1]}),
        ("schedule-edit", {"name": "s", "every": 60}),
        ("schedule-remove", {"names": ["absent"]}),
        ("schedule-run", {"name": "absent"}),
        ("erase", {"jids": ["job-00001"], "dry_run": True}),
        ("erase", {"jids": ["absent"], "forget": ["absent"]}),
    ):
        peer.ask(do, **fields)
    assert [action for action, _, _ in entries(peer)] == ["schedule-add"]


def test_every_request_that_changes_something_is_recorded() -> None:
    """From its reply, or by the slices of its work."""
    in_slices = (messages.Act, messages.Untrack, messages.Erase)
    kinds = [kind for kind in get_args(messages.AnyRequest) if kind.__struct_config__.tag in messages.CHANGING]
    assert len(kinds) >= 17
    assert [kind for kind in kinds if not issubclass(kind, in_slices) and kind not in audit._COUNTS] == []


def test_requests_that_read_have_no_operator() -> None:
    assert messages.CHANGING.isdisjoint({"status", "queues", "tags", "failures", "jobs", "schedule", "audit", "export"})


def test_pages_and_slices_of_one_request_are_one_entry(
    dispatcher: PlainDispatcher, peer: ControlPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "CHANGED_AT_MOST", 500)
    flood(dispatcher, 1_300)
    step = peer.ask("delete", queue="mail")
    while step["after"] is not None:
        step = peer.ask("delete", queue="mail", after=step["after"], as_of=step["as_of"])
    assert entries(peer) == [("delete", "queue:mail", 1_300)]
    assert sum(event.count for event in dispatcher.events if isinstance(event, Audited)) == 1_300


def test_a_client_that_disconnects_between_slices_leaves_no_change_unrecorded(
    dispatcher: PlainDispatcher, peer: ControlPeer
) -> None:
    flood(dispatcher, 1_000)
    work = peer.work("delete", queue="mail")
    next(work)
    next(work)
    work.close()
    gone = 1_000 - len(dispatcher.state.jobs)
    assert 0 < gone < 1_000
    assert entries(peer) == [("delete", "queue:mail", gone)]


def test_tracking_that_ends_is_recorded(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    for n in range(600):
        dispatcher.do(Watch(f"jid-{n}", dispatcher.now.wall))
    assert "error" not in peer.ask("erase", forget=["jid-0", "jid-0", "absent"])
    assert entries(peer) == [("erase", "forget:3", 1)]
    work = peer.work("untrack", all=True)
    next(work)
    work.close()
    assert entries(peer)[0] == ("untrack", "all", 599 - len(dispatcher.state.qless.watched))


def test_jids_are_not_in_the_trail(client: Conversation, peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    push(client, "anna@example.org")
    peer.ask("track", ids=["anna@example.org"])
    peer.ask("kill", ids=["anna@example.org"])
    peer.ask("erase", jids=["anna@example.org"], forget=["anna@example.org"])
    assert len(dispatcher.state.audit) == 3
    assert "anna" not in repr(list(dispatcher.state.audit))


def test_a_push_is_recorded_without_the_data_of_the_job(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    peer.ask("push", queue="mail", kind="welcome", jid="anna-0001", args=["anna"], custom={"to": "anna"})
    (entry,) = dispatcher.state.audit
    assert (entry.action, entry.target, entry.count) == ("push", "jobs:1 queue:mail kind:welcome", 1)


def test_a_long_target_is_cut_at_a_character() -> None:
    target = audit.target(messages.Pause(names=["ü" * 200, "ö" * 200]))
    assert len(target.encode()) <= 500
    assert target.startswith("names:üü")
    assert target.endswith("ö…")


def test_pages_are_newest_first(client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001")
    for n in range(5):
        peer.ask("tag", id="job-00001", tags=[f"t{n}"])
    first = peer.ask("audit", limit=2)
    assert [row["target"] for row in first["audit"]] == ["jobs:1 tags:t4", "jobs:1 tags:t3"]
    peer.ask("tag", id="job-00001", tags=["new"])
    second = peer.ask("audit", limit=2, after=first["after"])
    assert [row["target"] for row in second["audit"]] == ["jobs:1 tags:t2", "jobs:1 tags:t1"]
    last = peer.ask("audit", limit=2, after=second["after"])
    assert ([row["target"] for row in last["audit"]], last["after"]) == (["jobs:1 tags:t0"], None)


@pytest.mark.parametrize("after", ["", "x", "-1", "²", "9" * 30])
def test_a_wrong_cursor_is_refused(peer: ControlPeer, after: str) -> None:
    assert peer.ask("audit", after=after)["error"].startswith("after is not a cursor")


def test_too_long_fields_are_refused(client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001")
    for fields in ({"by": {"user": "u" * 256}}, {"by": {"user": "u", "role": "x"}}, {"reason": "r" * 501}):
        assert "error" in peer.ask("pause", names=["mail"], **fields)
    assert peer.ask("audit")["audit"] == []


def test_the_rows_of_queues_have_the_pause(client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001")
    push(client, "job-00002", queue="other")
    assert peer.ask("queue", name="mail")["queue"]["pause"] is None
    peer.ask("pause", names=["mail"], reason="full", by=ANNA)
    client.ask("QUEUE PAUSE other")
    since = "2026-11-15T17:55:45Z"
    assert peer.ask("queue", name="mail")["queue"]["pause"] == {"since": since, "reason": "full", "by": "anna"}
    assert [row["pause"] for row in peer.ask("queues")["queues"]] == [
        {"since": since, "reason": "full", "by": "anna"},
        {"since": since, "reason": None, "by": None},
    ]


def test_the_trail_is_the_same_after_a_restart(dispatcher: PlainDispatcher, client: Conversation) -> None:
    five_jobs(client)
    ControlPeer(dispatcher).ask("kill", all=True, by=ANNA)
    before = ControlPeer(dispatcher).ask("audit")
    assert before["audit"]
    assert ControlPeer(dispatcher.restarted(), WorkerRegistry()).ask("audit") == before
