"""Failures: groups over all protocols, pages of their jobs, and retry."""

from typing import Any

import pytest

from crossdock.model.commands.admin import Bury, Flush
from crossdock.model.commands.core import Enqueue
from crossdock.model.job import Extra, Failure, Form, Spec
from crossdock.model.states import State
from crossdock.protocols.admin.actions import CHANGED_AT_MOST
from crossdock.protocols.admin.messages import Failures
from crossdock.protocols.admin.reads import failures
from tests.model import invariants
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher
from tests.support.states import RULES


@pytest.fixture
def peer(all_protocols: AllProtocols) -> ControlPeer:
    return ControlPeer(all_protocols.dispatcher)


def jids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["jid"] for row in rows]


def failed(all_protocols: AllProtocols) -> list[str]:
    """A dead Faktory job and a failed qless job of the group Test, and a failed Workq job of its own group, oldest
    first."""
    names = []
    for protocol in ("faktory", "qless", "workq"):
        pusher = all_protocols.qless() if protocol == "qless" else all_protocols.peer(protocol)
        pusher.push(protocol, ["a"], retry=-1 if protocol == "faktory" else 0)
        worker = all_protocols.qless() if protocol == "qless" else all_protocols.peer(protocol)
        got = worker.fetch(protocol)
        assert got is not None and worker.fail(got.ident, f"{protocol} broke")
        names.append(max(all_protocols.dispatcher.state.jobs.values(), key=lambda job: job.number).jid)
        all_protocols.dispatcher.advance(1)
    return names


def dead(dispatcher: PlainDispatcher, jobs: int, group: str) -> None:
    first = dispatcher.state.counters.number + 1
    extra = Extra(error=Failure(group, "", (), dispatcher.now.wall, dispatcher.now.wall, 0.0, False))
    dispatcher.do(
        Enqueue("faktory", [Spec(f"dead-{n}", "q", "k", b"[]", Form.JSON, 0, RULES, 0.0, extra) for n in range(jobs)])
    )
    dispatcher.do(Bury("control", range(first, first + jobs)))


def test_groups_are_listed_with_their_newest_job(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    names = failed(all_protocols)
    rows = peer.ask("failures")["failures"]
    assert [(row["failure"], row["jobs"], row["newest"]["jid"]) for row in rows] == [
        ("Test", 2, names[1]),
        ("failed", 1, names[2]),
    ]
    assert rows[0]["newest"]["error"] == "Test: qless broke"
    assert peer.all("failures", limit=1) == rows
    assert [row["failure"] for row in peer.ask("failures", by="jobs", limit=1)["failures"]] == ["Test"]
    invariants.check(all_protocols.dispatcher.state)


def test_groups_that_a_flush_removes_between_two_slices_are_left_out(all_protocols: AllProtocols) -> None:
    failed(all_protocols)
    answer = failures(all_protocols.dispatcher, Failures())
    next(answer)
    all_protocols.dispatcher.do(Flush("control"))
    with pytest.raises(StopIteration) as ended:
        next(answer)
    assert b'"failures":[]' in ended.value.value


def test_jobs_of_a_group_are_listed_newest_first(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    names = failed(all_protocols)
    rows = peer.ask("jobs", failure="Test")["jobs"]
    assert [(row["jid"], row["state"]) for row in rows] == [(names[1], "failed"), (names[0], "dead")]
    assert jids(peer.all("jobs", failure="Test", limit=1)) == [names[1], names[0]]
    assert jids(peer.ask("jobs", failure="failed")["jobs"]) == [names[2]]
    assert peer.ask("count", failure="Test") | {"as_of": 0} == {"count": 2, "examined": 0, "as_of": 0, "after": None}
    assert jids(peer.ask("jobs", failure="Test", states=["dead"])["jobs"]) == [names[0]]
    assert peer.ask("jobs", failure="Test", states=["ready"])["jobs"] == []
    peer.ask("tag", id=names[0], tags=["x"])
    assert jids(peer.ask("jobs", failure="Test", tag="x")["jobs"]) == [names[0]]


def test_a_job_killed_by_hand_has_no_group_unless_it_failed_before(
    all_protocols: AllProtocols, peer: ControlPeer
) -> None:
    all_protocols.faktory().push("q", ["a"], ident="killed-01")
    peer.ask("kill", ids=["killed-01"])
    assert jids(peer.ask("jobs", failure="")["jobs"]) == ["killed-01"]
    peer.ask("retry", ids=["killed-01"])
    assert peer.ask("failures")["failures"] == []


def test_retry_makes_jobs_of_every_protocol_ready(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    names = failed(all_protocols)
    assert peer.ask("retry", failure="Test", dry_run=True)["count"] == 2
    assert peer.ask("retry", failure="Test", to="again")["done"] == 2
    jobs = {job.jid: job for job in all_protocols.dispatcher.state.jobs.values()}
    for name in names[:2]:
        assert (jobs[name].state, jobs[name].queue, jobs[name].failures) == (State.READY, "again", 0)
    assert peer.ask("retry", ids=[names[2]])["done"] == 1
    assert (jobs[names[2]].state, jobs[names[2]].queue) == (State.READY, "workq")
    assert peer.ask("failures")["failures"] == []
    invariants.check(all_protocols.dispatcher.state)
    for protocol, queue in (("workq", "again"), ("masenko", "again"), ("faktory", "workq")):
        worker = all_protocols.peer(protocol)
        got = worker.fetch(queue)
        assert got is not None and worker.succeed(got.ident)


def test_retry_to_a_queue_reaches_no_other_states_and_no_wrong_queue(
    all_protocols: AllProtocols, peer: ControlPeer
) -> None:
    all_protocols.faktory().push("q", ["a"], ident="ready-001")
    answer = peer.ask("retry", ids=["ready-001", "absent"], to="again")
    assert (answer["done"], answer["unknown"], answer["states"]) == (0, ["absent"], ["failed", "dead"])
    assert [each["state"] for each in answer["refused"]] == ["ready"]
    for name in ("", "a\0b", "x" * 300):
        assert peer.ask("retry", all=True, to=name)["error"].startswith("a name must have 1 to 255 bytes")
    assert peer.ask("retry")["error"].startswith("select jobs")


def test_jobs_that_fail_after_the_count_are_not_retried(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    dead(all_protocols.dispatcher, 3, "Boom")
    counted = peer.ask("retry", failure="Boom", dry_run=True)
    all_protocols.dispatcher.advance(1)
    dead(all_protocols.dispatcher, 2, "Boom")
    assert peer.ask("retry", failure="Boom", as_of=counted["as_of"])["done"] == counted["count"] == 3
    assert peer.ask("count", failure="Boom")["count"] == 2


def test_many_jobs_are_retried_in_steps(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    dead(all_protocols.dispatcher, CHANGED_AT_MOST + 300, "Boom")
    first = peer.ask("retry", failure="Boom", to="back")
    assert first["done"] == CHANGED_AT_MOST
    rest = peer.ask("retry", failure="Boom", to="back", after=first["after"], as_of=first["as_of"])
    assert (rest["done"], rest["after"]) == (300, None)
    assert all_protocols.faktory().look("back") == CHANGED_AT_MOST + 300


def test_a_group_is_found_again_after_a_restart(all_protocols: AllProtocols) -> None:
    failed(all_protocols)
    before = {group: list(order) for group, order in all_protocols.dispatcher.state.failures.groups.items()}
    again = all_protocols.restarted().dispatcher.state
    assert {group: list(order) for group, order in again.failures.groups.items()} == before


def test_failed_and_blocked_jobs_can_be_deleted(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    failed(all_protocols)
    here = all_protocols.qless()
    here.push("q", {}, ident="first")
    here.push("q", {}, ident="second", depends='["first"]')
    assert peer.ask("job", id="second")["job"]["depends_on"] == ["first"]
    assert peer.ask("job", id="first")["job"]["dependents"] == ["second"]
    assert peer.ask("delete", failure="Test")["done"] == 2
    assert peer.ask("delete", states=["blocked"])["done"] == 1
    got = here.fetch("q")
    assert got is not None and here.succeed(got.ident)
    assert peer.ask("delete", all=True)["done"] == 1, "the failed Workq job; complete jobs must be selected by state"
    assert peer.ask("delete", states=["complete"])["done"] == 1
    assert not all_protocols.dispatcher.state.jobs
    invariants.check(all_protocols.dispatcher.state)
