"""Failures on the control door: groups over all doors, their jobs in pages, and the way back (unfail)."""

from typing import Any

import pytest

from crossdock.model.commands.admin import Bury
from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Extra, Failure, Form, Spec
from crossdock.model.states import State
from crossdock.protocols.admin.actions import ACTED_AT_MOST
from tests.model import invariants
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher
from tests.support.floor import Floor
from tests.support.states import RULES


@pytest.fixture
def peer(floor: Floor) -> ControlPeer:
    return ControlPeer(floor.dispatcher)


def jids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["jid"] for row in rows]


def failed(floor: Floor) -> list[str]:
    """By Faktory a dead job and by qless a kept one of the group Test, by Workq one of its group; oldest first."""
    names = []
    for door in ("faktory", "qless", "workq"):
        pusher = floor.qless() if door == "qless" else floor.peer(door)
        pusher.push(door, ["a"], retry=-1 if door == "faktory" else 0)
        worker = floor.qless() if door == "qless" else floor.peer(door)
        got = worker.fetch(door)
        assert got is not None and worker.fail(got.ident, f"{door} broke")
        names.append(max(floor.dispatcher.state.jobs.values(), key=lambda job: job.number).jid)
        floor.dispatcher.advance(1)
    return names


def dead(dispatcher: PlainDispatcher, jobs: int, group: str) -> None:
    first = dispatcher.state.counters.number + 1
    extra = Extra(error=Failure(group, "", (), dispatcher.now.wall, dispatcher.now.wall, 0.0, False))
    dispatcher.do(
        Enqueue("faktory", [Spec(f"dead-{n}", "q", "k", b"[]", Form.JSON, 0, RULES, 0.0, extra) for n in range(jobs)])
    )
    dispatcher.do(Bury("control", range(first, first + jobs)))


def test_groups_with_their_newest_job(floor: Floor, peer: ControlPeer) -> None:
    names = failed(floor)
    rows = peer.ask("failures")["failures"]
    assert [(row["failure"], row["jobs"], row["newest"]["jid"]) for row in rows] == [
        ("Test", 2, names[1]),
        ("failed", 1, names[2]),
    ]
    assert rows[0]["newest"]["error"] == "Test: qless broke"
    assert peer.all("failures", limit=1) == rows
    assert [row["failure"] for row in peer.ask("failures", by="jobs", limit=1)["failures"]] == ["Test"]
    invariants.check(floor.dispatcher.state)


def test_jobs_of_a_group_newest_first(floor: Floor, peer: ControlPeer) -> None:
    names = failed(floor)
    rows = peer.ask("jobs", failure="Test")["jobs"]
    assert [(row["jid"], row["state"]) for row in rows] == [(names[1], "failed"), (names[0], "dead")]
    assert jids(peer.all("jobs", failure="Test", limit=1)) == [names[1], names[0]]
    assert jids(peer.ask("jobs", failure="failed")["jobs"]) == [names[2]]
    assert peer.ask("count", failure="Test") | {"as_of": 0} == {"count": 2, "looked": 0, "as_of": 0, "after": None}
    assert jids(peer.ask("jobs", failure="Test", states=["dead"])["jobs"]) == [names[0]]
    assert peer.ask("jobs", failure="Test", states=["ready"])["jobs"] == []
    peer.ask("tag", id=names[0], tags=["x"])
    assert jids(peer.ask("jobs", failure="Test", tag="x")["jobs"]) == [names[0]]


def test_a_job_killed_by_hand_has_no_group_unless_it_failed_before(floor: Floor, peer: ControlPeer) -> None:
    floor.faktory().push("q", ["a"], ident="killed-01")
    peer.ask("kill", ids=["killed-01"])
    assert jids(peer.ask("jobs", failure="")["jobs"]) == ["killed-01"]
    peer.ask("retry", ids=["killed-01"])
    assert peer.ask("failures")["failures"] == []


def test_unfail_requeues_jobs_of_every_protocol(floor: Floor, peer: ControlPeer) -> None:
    names = failed(floor)
    assert peer.ask("unfail", failure="Test", dry=True)["count"] == 2
    assert peer.ask("unfail", failure="Test", to="again")["done"] == 2
    jobs = {job.jid: job for job in floor.dispatcher.state.jobs.values()}
    for name in names[:2]:
        assert (jobs[name].state, jobs[name].queue, jobs[name].failures) == (State.READY, "again", 0)
    assert peer.ask("unfail", ids=[names[2]])["done"] == 1
    assert (jobs[names[2]].state, jobs[names[2]].queue) == (State.READY, "workq")
    assert peer.ask("failures")["failures"] == []
    invariants.check(floor.dispatcher.state)
    for door, queue in (("workq", "again"), ("masenko", "again"), ("faktory", "workq")):
        worker = floor.peer(door)
        got = worker.fetch(queue)
        assert got is not None and worker.succeed(got.ident)


def test_unfail_reaches_no_other_states_and_no_wrong_queue(floor: Floor, peer: ControlPeer) -> None:
    floor.faktory().push("q", ["a"], ident="ready-001")
    answer = peer.ask("unfail", ids=["ready-001", "nobody"])
    assert (answer["done"], answer["unknown"], answer["states"]) == (0, ["nobody"], ["failed", "dead"])
    assert [each["state"] for each in answer["refused"]] == ["ready"]
    for name in ("", "a\0b", "x" * 300):
        assert peer.ask("unfail", all=True, to=name)["error"].startswith("a name has 1 to 255 bytes")
    assert peer.ask("unfail")["error"].startswith("say which jobs")


def test_what_fails_after_it_was_counted_is_left_alone(floor: Floor, peer: ControlPeer) -> None:
    dead(floor.dispatcher, 3, "Boom")
    counted = peer.ask("unfail", failure="Boom", dry=True)
    floor.dispatcher.advance(1)
    dead(floor.dispatcher, 2, "Boom")
    assert peer.ask("unfail", failure="Boom", as_of=counted["as_of"])["done"] == counted["count"] == 3
    assert peer.ask("count", failure="Boom")["count"] == 2


def test_many_go_in_steps(floor: Floor, peer: ControlPeer) -> None:
    dead(floor.dispatcher, ACTED_AT_MOST + 300, "Boom")
    first = peer.ask("unfail", failure="Boom", to="back")
    assert first["done"] == ACTED_AT_MOST
    rest = peer.ask("unfail", failure="Boom", to="back", after=first["after"], as_of=first["as_of"])
    assert (rest["done"], rest["after"]) == (300, None)
    assert floor.faktory().look("back") == ACTED_AT_MOST + 300


def test_a_group_is_found_again_after_a_restart(floor: Floor) -> None:
    failed(floor)
    before = {group: list(order) for group, order in floor.dispatcher.state.failures.groups.items()}
    again = floor.restarted().dispatcher.state
    assert {group: list(order) for group, order in again.failures.groups.items()} == before


def test_failed_and_blocked_jobs_can_be_deleted(floor: Floor, peer: ControlPeer) -> None:
    failed(floor)
    here = floor.qless()
    here.push("q", {}, ident="first")
    here.push("q", {}, ident="second", depends='["first"]')
    assert peer.ask("job", id="second")["job"]["needs"] == ["first"]
    assert peer.ask("job", id="first")["job"]["needed_by"] == ["second"]
    assert peer.ask("delete", failure="Test")["done"] == 2
    assert peer.ask("delete", states=["blocked"])["done"] == 1
    got = here.fetch("q")
    assert got is not None and here.succeed(got.ident)
    assert peer.ask("delete", all=True)["done"] == 1, "the failed one of Workq; a complete one must be asked for"
    assert peer.ask("delete", states=["complete"])["done"] == 1
    assert not floor.dispatcher.state.jobs
    invariants.check(floor.dispatcher.state)
