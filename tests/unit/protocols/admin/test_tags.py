"""Tags and tracked jobs of all protocols, in pages, and changes by tag."""

import json
from typing import Any

import pytest

from crossdock.model.commands.core import Enqueue
from crossdock.model.commands.qless import EditTags
from crossdock.model.job import Extra, Form, Spec
from crossdock.model.protocol_data import Tag
from crossdock.protocols.admin import job_walk
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher
from tests.support.states import RULES


@pytest.fixture
def peer(all_protocols: AllProtocols) -> ControlPeer:
    return ControlPeer(all_protocols.dispatcher)


def tag(dispatcher: PlainDispatcher, number: int, *tags: Tag) -> None:
    dispatcher.do(EditTags("qless", dispatcher.now.wall, number, tags))


def jids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["jid"] for row in rows]


def three_protocols(all_protocols: AllProtocols) -> list[str]:
    """A job of each protocol in its own queue, all with one tag. Returns their jids in the order of tagging."""
    for protocol in ("faktory", "workq", "masenko"):
        all_protocols.peer(protocol).push(f"{protocol}-queue", ["a"])
    for number in (3, 1, 2):
        all_protocols.dispatcher.advance(1)
        tag(all_protocols.dispatcher, number, "urgent")
    return [all_protocols.dispatcher.state.jobs[number].jid for number in (3, 1, 2)]


def test_jobs_of_every_protocol_are_listed_in_the_order_they_were_tagged(
    all_protocols: AllProtocols, peer: ControlPeer
) -> None:
    order = three_protocols(all_protocols)
    all_protocols.faktory().push("q", ["untagged"])
    assert jids(peer.ask("jobs", tag="urgent")["jobs"]) == order
    assert peer.ask("count", tag="urgent") | {"as_of": 0} == {"count": 3, "examined": 0, "as_of": 0, "after": None}
    assert peer.ask("jobs", tag="absent's") == {"jobs": [], "examined": 0, "after": None}
    assert [row["tags"] for row in peer.ask("jobs", tag="urgent")["jobs"]] == [["urgent"]] * 3


def test_a_tag_put_by_qless_may_be_any_scalar(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.qless().call("put", "w", "q", "j1", "K", "{}", 0, "tags", '["a", 5, true, 0.5]')
    for text in ("a", "5", "true", "0.5"):
        assert jids(peer.ask("jobs", tag=text)["jobs"]) == ["j1"]
    assert peer.ask("job", id="j1")["job"]["tags"] == ["a", "5", "true", "0.5"]


def test_a_tag_is_combined_with_other_filters(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    order = three_protocols(all_protocols)
    worker = all_protocols.faktory("w")
    assert worker.fetch("faktory-queue") is not None
    assert jids(peer.ask("jobs", tag="urgent", states=["leased"])["jobs"]) == [order[1]]
    assert peer.ask("count", tag="urgent", states=["ready"])["count"] == 2
    assert jids(peer.ask("jobs", tag="urgent", queue="workq-queue")["jobs"]) == [order[2]]
    assert jids(peer.ask("jobs", tag="urgent", kind="M")["jobs"]) == [order[0]]
    all_protocols.dispatcher.advance(100)
    assert jids(peer.ask("jobs", tag="urgent", older_than=102)["jobs"]) == [order[0], order[2]]


def test_pages_show_every_tagged_job_once(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    order = three_protocols(all_protocols)
    assert jids(peer.all("jobs", tag="urgent", limit=1)) == order
    first = peer.ask("jobs", tag="urgent", limit=1)["after"]
    assert "cursor" in peer.ask("jobs", after=first)["error"], "a cursor of another walk is refused"
    peer.ask("delete", ids=[order[1]])
    assert jids(peer.ask("jobs", tag="urgent", after=first)["jobs"]) == [order[2]]


def test_the_cost_of_a_page_depends_on_its_size(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    specs = [
        Spec(f"job-{n:05d}", "q", "k", b"[]", Form.JSON, 0, RULES, 0.0, Extra(tags=("x",) if n % 10 else ()))
        for n in range(5_000)
    ]
    all_protocols.dispatcher.do(Enqueue("faktory", specs))
    assert peer.ask("jobs", tag="x", limit=10)["examined"] <= job_walk.SLICE
    assert len(peer.all("jobs", tag="x", limit=200)) == 4_500


def test_actions_by_tag_change_no_other_jobs(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    three_protocols(all_protocols)
    all_protocols.faktory().push("q", ["untagged"])
    counted = peer.ask("delete", tag="urgent", dry_run=True)
    assert counted["count"] == 3
    all_protocols.dispatcher.advance(5)
    assert peer.ask("kill", tag="urgent", queue="workq-queue")["done"] == 1
    assert peer.ask("delete", tag="urgent", as_of=counted["as_of"])["done"] == 2, (
        "the killed job changed its state after the count"
    )
    assert [row["state"] for row in peer.ask("jobs", tag="urgent")["jobs"]] == ["dead"]
    assert peer.ask("delete", tag="urgent")["done"] == 1
    assert len(all_protocols.dispatcher.state.jobs) == 1 and not all_protocols.dispatcher.state.tags.jobs


def test_a_tag_must_be_a_string(peer: ControlPeer) -> None:
    assert peer.ask("jobs", tag=5)["error"].startswith("jobs: Expected `str")
    assert peer.ask("jobs", tag="")["jobs"] == [], "the empty tag is a tag like others"


def test_tags_by_name_and_by_jobs(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    three_protocols(all_protocols)
    tag(all_protocols.dispatcher, 1, "b", 7)
    tag(all_protocols.dispatcher, 2, "b", "")
    rows = [{"tag": "", "jobs": 1}, {"tag": "7", "jobs": 1}, {"tag": "b", "jobs": 2}, {"tag": "urgent", "jobs": 3}]
    assert peer.ask("tags") == {"tags": rows, "after": None}
    assert peer.all("tags", limit=1) == rows
    assert [row["tag"] for row in peer.ask("tags", by="jobs", limit=2)["tags"]] == ["urgent", "b"]


def test_tag_and_untag(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.peer("masenko").push("q", "a")
    assert peer.ask("tag", id=1, tags=["x", "y", "x"])["tags"] == ["x", "y"]
    assert peer.ask("tag", id=1, tags=["x"])["tags"] == ["x", "y"]
    assert all_protocols.dispatcher.state.tags.uses == {"x": 1, "y": 1}, "an existing tag is not added again"
    assert peer.ask("untag", id=1, tags=["x", "never had"])["tags"] == ["y"]
    assert all_protocols.dispatcher.state.tags.uses == {"y": 1, "x": 0}
    assert [row["tag"] for row in peer.ask("tags")["tags"]] == ["y"]
    assert peer.ask("tag", id="absent", tags=["x"]) == {"error": "job absent not found"}
    assert "length >= 1" in peer.ask("tag", id=1, tags=[])["error"]


def test_a_numeric_tag_is_selected_by_its_text(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.qless().call("put", "w", "q", "j1", "K", "{}", 0, "tags", '["a", 5, true]')
    assert peer.ask("tag", id="j1", tags=["5"])["tags"] == ["a", "5", "true"]
    assert peer.ask("untag", id="j1", tags=["5", "true"])["tags"] == ["a"]
    assert set(all_protocols.dispatcher.state.tags.jobs) == {"a"}


def test_tracked_jobs_with_their_state(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    here = all_protocols.qless()
    for protocol in ("faktory", "workq"):
        all_protocols.peer(protocol).push("q", ["a"])
    names = [all_protocols.dispatcher.state.jobs[number].jid for number in (1, 2)]
    assert peer.ask("track", ids=[1, names[1], "absent"]) == {"done": names, "unknown": ["absent"]}
    assert peer.ask("track", ids=[2]) == {"done": [], "unknown": []}
    assert {each["jid"] for each in json.loads(here.call("track"))["jobs"]} == set(names)
    assert peer.ask("job", id=1)["job"]["tracked"] is not None
    got = all_protocols.faktory().fetch("q")
    assert got is not None
    rows = {row["jid"]: row["job"]["state"] for row in peer.all("tracked", limit=1)}
    assert rows == {names[0]: "leased", names[1]: "ready"}
    peer.ask("delete", ids=[names[1]])
    assert [row["job"] for row in peer.ask("tracked")["tracked"] if row["jid"] == names[1]] == [None]
    assert peer.ask("untrack", ids=[names[1], 1, "absent"]) == {"done": [names[1], names[0]], "unknown": ["absent"]}
    assert peer.ask("tracked") == {"tracked": [], "after": None}


def test_all_jobs_are_untracked_only_with_all(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    for _ in range(3):
        all_protocols.faktory().push("q", ["a"])
    peer.ask("track", ids=[1, 2, 3])
    assert peer.ask("untrack")["error"].startswith("select jobs")
    assert len(peer.ask("untrack", all=True)["done"]) == 3
    assert not all_protocols.dispatcher.state.qless.watched


def test_a_track_by_the_operator_is_published_over_redis(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    all_protocols.faktory().push("q", ["a"], ident="faktory-1")
    peer.ask("track", ids=["faktory-1"])
    assert '"tracked":true' in all_protocols.qless().call("get", "faktory-1")


@pytest.mark.parametrize("tag", ["", "x" * 256, "a\0b"])
def test_a_tag_is_as_long_as_qless_allows(all_protocols: AllProtocols, peer: ControlPeer, tag: str) -> None:
    all_protocols.qless().push("q", {}, ident="a")
    assert "1 to 255 bytes" in peer.ask("tag", id="a", tags=[tag])["error"]
