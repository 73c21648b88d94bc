"""Tags on the control door: jobs of all doors by tag, a page at a time, and actions on them."""

from typing import Any

import pytest

from crossdock.model.commands import Enqueue
from crossdock.model.faces import Tag
from crossdock.model.job import Extra, Form, Spec
from crossdock.model.moves import EditTags
from crossdock.wire.control import walk
from tests.support.control_peer import ControlPeer
from tests.support.desk import PlainDesk
from tests.support.floor import Floor
from tests.support.states import RULES


@pytest.fixture
def floor() -> Floor:
    return Floor()


@pytest.fixture
def peer(floor: Floor) -> ControlPeer:
    return ControlPeer(floor.desk)


def tag(desk: PlainDesk, number: int, *tags: Tag) -> None:
    desk.do(EditTags("qless", desk.now.wall, number, tags))


def jids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["jid"] for row in rows]


def three_doors(floor: Floor) -> list[str]:
    """A job a door in a queue of its own, all with one tag; their jids in the order they got it."""
    for door in ("faktory", "workq", "masenko"):
        floor.peer(door).push(f"{door}-queue", ["a"])
    for number in (3, 1, 2):
        floor.desk.advance(1)
        tag(floor.desk, number, "urgent")
    return [floor.desk.memory.jobs[number].jid for number in (3, 1, 2)]


def test_jobs_of_every_door_in_the_order_they_got_it(floor: Floor, peer: ControlPeer) -> None:
    order = three_doors(floor)
    floor.faktory().push("q", ["untagged"])
    assert jids(peer.ask("jobs", tag="urgent")["jobs"]) == order
    assert peer.ask("count", tag="urgent") | {"as_of": 0} == {"count": 3, "looked": 0, "as_of": 0, "after": None}
    assert peer.ask("jobs", tag="nobody's") == {"jobs": [], "looked": 0, "after": None}
    assert [row["tags"] for row in peer.ask("jobs", tag="urgent")["jobs"]] == [["urgent"]] * 3


def test_a_tag_put_by_qless_may_be_any_scalar(floor: Floor, peer: ControlPeer) -> None:
    floor.qless().call("put", "w", "q", "j1", "K", "{}", 0, "tags", '["a", 5, true, 0.5]')
    for text in ("a", "5", "true", "0.5"):
        assert jids(peer.ask("jobs", tag=text)["jobs"]) == ["j1"]
    assert peer.ask("job", id="j1")["job"]["tags"] == ["a", "5", "true", "0.5"]


def test_a_tag_joins_with_the_other_filters(floor: Floor, peer: ControlPeer) -> None:
    order = three_doors(floor)
    worker = floor.faktory("w")
    assert worker.fetch("faktory-queue") is not None
    assert jids(peer.ask("jobs", tag="urgent", states=["leased"])["jobs"]) == [order[1]]
    assert peer.ask("count", tag="urgent", states=["ready"])["count"] == 2
    assert jids(peer.ask("jobs", tag="urgent", queue="workq-queue")["jobs"]) == [order[2]]
    assert jids(peer.ask("jobs", tag="urgent", kind="M")["jobs"]) == [order[0]]
    floor.desk.advance(100)
    assert jids(peer.ask("jobs", tag="urgent", older_than=102)["jobs"]) == [order[0], order[2]]


def test_pages_show_every_tagged_job_once(floor: Floor, peer: ControlPeer) -> None:
    order = three_doors(floor)
    assert jids(peer.all("jobs", tag="urgent", limit=1)) == order
    first = peer.ask("jobs", tag="urgent", limit=1)["after"]
    assert "cursor" in peer.ask("jobs", after=first)["error"], "one of another walk"
    peer.ask("delete", ids=[order[1]])
    assert jids(peer.ask("jobs", tag="urgent", after=first)["jobs"]) == [order[2]]


def test_a_page_costs_its_page(floor: Floor, peer: ControlPeer) -> None:
    specs = [
        Spec(f"job-{n:05d}", "q", "k", b"[]", Form.JSON, 0, RULES, 0.0, Extra(tags=("x",) if n % 10 else ()))
        for n in range(5_000)
    ]
    floor.desk.do(Enqueue("faktory", specs))
    assert peer.ask("jobs", tag="x", limit=10)["looked"] <= walk.SLICE
    assert len(peer.all("jobs", tag="x", limit=200)) == 4_500


def test_actions_by_tag_touch_no_other(floor: Floor, peer: ControlPeer) -> None:
    three_doors(floor)
    floor.faktory().push("q", ["untagged"])
    counted = peer.ask("delete", tag="urgent", dry=True)
    assert counted["count"] == 3
    floor.desk.advance(5)
    assert peer.ask("kill", tag="urgent", queue="workq-queue")["done"] == 1
    assert peer.ask("delete", tag="urgent", as_of=counted["as_of"])["done"] == 2, "one is in its state for less long"
    assert [row["state"] for row in peer.ask("jobs", tag="urgent")["jobs"]] == ["dead"]
    assert peer.ask("delete", tag="urgent")["done"] == 1
    assert len(floor.desk.memory.jobs) == 1 and not floor.desk.memory.tags.jobs


@pytest.mark.parametrize("wrong", ["", 5])
def test_a_tag_is_a_text(peer: ControlPeer, wrong: object) -> None:
    assert peer.ask("jobs", tag=wrong)["error"].startswith("jobs: Expected `str")
