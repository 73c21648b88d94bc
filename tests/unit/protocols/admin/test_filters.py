"""Filters in requests: each field selects the right jobs, follows the right index, and stays bounded."""

import json
from typing import Any

import pytest

from crossdock.model.commands.core import Enqueue
from crossdock.model.commands.qless import EditTags
from crossdock.model.job import Extra, Failure, Form, Spec
from crossdock.protocols.admin import job_walk
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import STATES, five_jobs, flood, push
from tests.support.states import RULES


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


@pytest.fixture
def jobs(client: Conversation, dispatcher: PlainDispatcher) -> None:
    """Jobs 1 to 5 of queue mail in five states, then two waiting jobs."""
    five_jobs(client)
    dispatcher.advance(10.0)
    push(client, "other-0001", queue="video", kind="resize", args=["größe", {"name": 'a "b"'}])
    push(client, "other-0002", queue="video.slow", kind="Welcome")
    (number,) = (job.number for job in dispatcher.state.jobs.values() if job.jid == "other-0001")
    dispatcher.do(EditTags("admin", dispatcher.now.wall, number, add=("vip",)))


def found(peer: ControlPeer, text: str, **fields: Any) -> list[str]:
    rows = peer.all("jobs", filter=text, **fields)
    return sorted(row["jid"].removeprefix("job-0000") for row in rows)


OTHERS = ["other-0001", "other-0002"]
ALL = ["1", "2", "3", "4", "5", *OTHERS]


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ALL),
        ("state:dead", ["5"]),
        ("state:dead,leased", ["1", "5"]),
        ("-state:dead,leased", ["2", "3", "4", *OTHERS]),
        ("queue:video", ["other-0001"]),
        ("queue:video*", OTHERS),
        ("queue:video,video.slow", OTHERS),
        ("-queue:mail", OTHERS),
        ("queue:mail state:ready", ["2"]),
        ("queue:mail queue:video", []),
        ("kind:resize", ["other-0001"]),
        ("kind:res*,Welcome", OTHERS),
        ("tag:vip", ["other-0001"]),
        ("tag:v*", ["other-0001"]),
        ("-tag:vip queue:video*", ["other-0002"]),
        ("tag:vip queue:mail", []),
        ("id:job-00003", ["3"]),
        ("id:job-00003,6", ["3", "other-0001"]),
        ("id:other*", OTHERS),
        ("-id:job*", OTHERS),
        ("id:absent", []),
        ("id:job-00003 state:dead", []),
        ("group:Boom", ["5"]),
        ("group:Bo*", ["5"]),
        ("group:*", ["5"]),
        ("group:Boom,Other", ["5"]),
        ("-group:Boom", ["1", "2", "3", "4", *OTHERS]),
        ("group:Boom tag:vip", []),
        ('error:"IT broke"', ["3", "5"]),
        ("-error:broke state:retrying,dead,scheduled", ["4"]),
        ("payload:größe", ["other-0001"]),
        ('payload:"a \\"b"', ["other-0001"]),
        ("protocol:faktory", ALL),
        ("protocol:qless", []),
        ("worker:w1", ["1"]),
        ("worker:w*", ["1"]),
        ("-worker:w1 queue:mail", ["2", "3", "4", "5"]),
        ("older:8s queue:mail", ["1", "2", "3", "4", "5"]),
        ("older:8s -queue:mail", []),
        ("newer:8s", OTHERS),
        ("since:5s", OTHERS),
        ("until:2026-11-15T17:55:50", ["1", "2", "3", "4", "5"]),
        ("until:2026-11-15T17:55:50 state:dead", ["5"]),
        ("job-00003", ["3"]),
        ("6", ["other-0001"]),
        ("WELCOME", ["other-0002"]),
        ("video", OTHERS),
        ("broke", ["3", "5"]),
        ("-broke state:dead,ready queue:mail", ["2"]),
    ],
)
def test_a_filter_selects_jobs(peer: ControlPeer, text: str, expected: list[str]) -> None:
    assert found(peer, text) == expected
    assert found(peer, text, limit=1) == expected, "page by page"
    assert sum(step["count"] for step in counts(peer, text)) == len(expected)


def counts(peer: ControlPeer, text: str) -> list[dict[str, Any]]:
    steps = [peer.ask("count", filter=text)]
    while steps[-1]["after"] is not None:
        steps.append(peer.ask("count", filter=text, after=steps[-1]["after"]))
    return steps


@pytest.mark.usefixtures("jobs")
def test_a_filter_and_the_other_fields_are_combined(peer: ControlPeer) -> None:
    assert found(peer, "state:dead,ready", queue="mail") == ["2", "5"]
    assert found(peer, "queue:video", queue="mail") == []
    assert found(peer, "group:Boom", failure="Absent") == []
    assert found(peer, "state:dead", states=["ready"]) == []


@pytest.mark.usefixtures("jobs")
def test_an_index_is_followed_where_the_filter_allows_it(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    flood(dispatcher, 2_000, queue="bulk")
    for text in ("tag:vip", "id:job-00003", "group:Boom", "worker:w1", "queue:video state:ready"):
        assert peer.ask("jobs", filter=text)["examined"] <= 2, text
    assert peer.ask("jobs", filter="group:Bo*")["examined"] <= 4


@pytest.mark.usefixtures("jobs")
def test_a_bad_filter_is_refused(peer: ControlPeer) -> None:
    error = 'filter: stat:dead at position 1: unknown field "stat"; did you mean "state"?'
    for do in ("jobs", "count", "tracked", "delete", "retry", "kill", "cancel", "release"):
        assert peer.ask(do, filter="stat:dead") == {"error": error}
    assert peer.ask("kill", filter="queue:mail state:dead")["error"] == (
        'state "dead" at position 12 of the filter cannot be selected here; '
        "choose from ready, retrying, scheduled, blocked, held"
    )


@pytest.mark.usefixtures("jobs")
def test_a_filter_of_no_words_selects_nothing_to_change(peer: ControlPeer) -> None:
    assert "select jobs" in peer.ask("delete", filter=" ")["error"]


@pytest.mark.usefixtures("jobs")
def test_an_unknown_queue_or_group_is_reported(peer: ControlPeer) -> None:
    assert peer.ask("jobs", filter="queue:nowhere")["missing"] == ["queue"]
    assert peer.ask("jobs", filter="queue:nowhere,mail").get("missing") is None
    assert peer.ask("jobs", filter="-queue:nowhere").get("missing") is None
    assert peer.ask("jobs", filter="queue:no*")["missing"] == ["queue"]
    assert peer.ask("jobs", filter="queue:ma*").get("missing") is None
    assert peer.ask("count", filter="group:Absent queue:nowhere")["missing"] == ["queue", "failure"]


@pytest.mark.usefixtures("jobs")
def test_an_action_changes_the_filtered_jobs(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    counted = peer.ask("retry", filter="error:broke", dry_run=True)
    assert counted["count"] == 2
    assert peer.ask("retry", filter="error:broke", as_of=counted["as_of"])["done"] == 2
    assert found(peer, "state:ready") == ["2", "3", "5", *OTHERS]
    assert peer.ask("delete", filter="queue:mail")["done"] == 4, "a leased job is deleted only if it is named"
    assert peer.ask("delete", filter="queue:mail state:leased")["done"] == 1


@pytest.mark.usefixtures("jobs")
def test_tracked_jobs_are_filtered(peer: ControlPeer) -> None:
    peer.ask("track", ids=list(STATES))
    rows = peer.ask("tracked", filter="error:broke")["tracked"]
    assert [row["jid"] for row in rows] == ["job-00003", "job-00005"]


def test_cursors_of_a_group_prefix_continue_in_the_right_group(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    dispatcher.do(Enqueue("faktory", [spec(f"{group}{n}", group) for group in ("Ta", "Tb", "U", "") for n in range(3)]))
    for job in list(dispatcher.state.jobs):
        peer.ask("kill", ids=[job])
    assert found(peer, "group:T*", limit=2) == ["Ta0", "Ta1", "Ta2", "Tb0", "Tb1", "Tb2"]
    assert len(found(peer, "group:*", limit=1)) == 12


def spec(jid: str, group: str, payload: bytes = b"[]") -> Spec:
    error = Failure(group, "m", (), 1.0, 1.0, 0.0, lost=False) if group else None
    return Spec(jid, "q", "k", payload, Form.JSON, 0, RULES, 0.0, Extra(error=error))


def test_a_search_stops_after_a_bounded_number_of_bytes(
    peer: ControlPeer, dispatcher: PlainDispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = json.dumps(["x" * 100_000]).encode()
    dispatcher.do(Enqueue("faktory", [spec(f"big-{n:05d}", "", payload) for n in range(20)]))
    monkeypatch.setattr(job_walk, "SEARCHED_AT_MOST", 600_000)
    first = peer.ask("jobs", filter="payload:absent")
    assert (first["jobs"], first["examined"]) == ([], 7)
    assert first["after"] is not None
    assert len(counts(peer, "payload:xxx")) == 4
    assert sum(step["count"] for step in counts(peer, "payload:xxx")) == 20


def test_a_cursor_of_another_kind_of_filter_is_refused(peer: ControlPeer, dispatcher: PlainDispatcher) -> None:
    flood(dispatcher, 3)
    cursor = peer.ask("jobs", limit=1)["after"]
    for text in ("id:job-00000001,2", "tag:x", "group:x", "group:x*"):
        assert "not a cursor" in peer.ask("jobs", filter=text, after=cursor)["error"]
