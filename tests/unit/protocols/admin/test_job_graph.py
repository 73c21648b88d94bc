"""The graph of a job: dependencies and dependents, bounded in levels and width."""

from typing import Any

import pytest

from crossdock.protocols.admin.job_graph import LEVELS, WIDTH
from tests.support.all_protocols import AllProtocols
from tests.support.control_peer import ControlPeer


@pytest.fixture
def peer(all_protocols: AllProtocols) -> ControlPeer:
    return ControlPeer(all_protocols.dispatcher)


def put(all_protocols: AllProtocols, jid: str, *depends: str) -> None:
    names = ", ".join(f'"{each}"' for each in depends)
    all_protocols.qless().push("q", {}, ident=jid, depends=f"[{names}]")


def levels(graph: dict[str, Any]) -> dict[str, int]:
    return {job["jid"]: job["level"] for job in graph["jobs"]}


def jid_edges(graph: dict[str, Any]) -> set[tuple[str, str]]:
    names = {job["number"]: job["jid"] for job in graph["jobs"]}
    return {(names[start], names[end]) for start, end in graph["edges"]}


def test_a_job_is_shown_with_what_it_waits_for_and_what_waits_for_it(
    all_protocols: AllProtocols, peer: ControlPeer
) -> None:
    put(all_protocols, "extract")
    put(all_protocols, "clean", "extract")
    put(all_protocols, "join", "clean", "extract")
    put(all_protocols, "report", "join")
    put(all_protocols, "alone")
    graph = peer.ask("graph", id="join")["graph"]
    assert levels(graph) == {"join": 0, "clean": -1, "extract": -1, "report": 1}
    assert jid_edges(graph) == {("clean", "join"), ("extract", "join"), ("extract", "clean"), ("join", "report")}
    assert graph["left_out"] == {}
    assert {job["jid"]: job["state"] for job in graph["jobs"]}["extract"] == "ready"
    assert levels(peer.ask("graph", id="alone")["graph"]) == {"alone": 0}


def test_levels_and_the_jobs_of_a_level_are_bounded(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    put(all_protocols, "first")
    for number in range(WIDTH + 5):
        put(all_protocols, f"wide-{number}", "first")
    before = "first"
    for number in range(LEVELS + 2):
        put(all_protocols, f"deep-{number}", before)
        before = f"deep-{number}"
    graph = peer.ask("graph", id="first")["graph"]
    assert len(graph["jobs"]) == 1 + WIDTH
    assert graph["left_out"] == {"1": 6}
    assert min(levels(peer.ask("graph", id=before)["graph"]).values()) == -LEVELS


def test_a_completed_dependency_is_no_longer_shown(all_protocols: AllProtocols, peer: ControlPeer) -> None:
    put(all_protocols, "first")
    put(all_protocols, "second", "first")
    qless = all_protocols.qless()
    got = qless.fetch("q")
    assert got is not None and qless.succeed(got.ident)
    assert levels(peer.ask("graph", id="second")["graph"]) == {"second": 0}


def test_an_unknown_job_is_an_error(peer: ControlPeer) -> None:
    assert "not found" in peer.ask("graph", id="none")["error"]
