"""Resqu batches in other protocols and for the operator: invisible before the commit, then jobs like others."""

from typing import Any

import pytest

from crossdock.model.commands import resqu
from crossdock.model.commands import resqu as r
from crossdock.protocols.admin import job_walk
from tests.model.resqu_bench import job_spec
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    dispatcher = PlainDispatcher()
    dispatcher.do(resqu.SetMapping({"default": {"default": "static"}}, {"default": {"default": "batch"}}))
    for name in ("b1", "b2"):
        spec = job_spec(f"{name}-0", source=name, name="Import")
        dispatcher.do(r.OpenResquBatch("resqu", name, name, "Import", spec))
        for index in (1, 2):
            dispatcher.do(r.PushToResquBatch("resqu", name, job_spec(f"{name}-{index}", source=name, name="Import")))
    return dispatcher


@pytest.fixture
def protocol(dispatcher: PlainDispatcher) -> ClockedFaktory:
    return ClockedFaktory(dispatcher)


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def held(peer: ControlPeer, **rest: Any) -> list[str]:
    return [row["jid"] for row in peer.ask("jobs", states=["held"], **rest)["jobs"]]


def test_jobs_of_a_batch_are_listed_once_it_is_committed(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    assert held(peer) == []
    assert peer.ask("count", states=["held"])["count"] == 0
    dispatcher.do(r.CommitResquBatch("b2"))
    assert held(peer) == ["b2-0", "b2-1", "b2-2"]
    dispatcher.do(r.CommitResquBatch("b1"))
    assert held(peer) == ["b1-0", "b1-1", "b1-2", "b2-0", "b2-1", "b2-2"]
    assert peer.ask("count", states=["held"])["count"] == 6


def test_jobs_of_a_batch_are_listed_in_pages(
    dispatcher: PlainDispatcher, peer: ControlPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_walk, "SLICE", 2)
    for name in ("b1", "b2"):
        dispatcher.do(r.CommitResquBatch(name))
    found: list[str] = []
    after: str | None = None
    for _ in range(10):
        page = peer.ask("jobs", states=["held"], limit=2, after=after)
        found += [row["jid"] for row in page["jobs"]]
        after = page["after"]
        if after is None:
            break
    assert found == ["b1-0", "b1-1", "b1-2", "b2-0", "b2-1", "b2-2"]


def test_an_operator_may_delete_a_job_of_a_batch(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    dispatcher.do(r.CommitResquBatch("b1"))
    assert peer.ask("delete", ids=["b1-1"])["done"] == 1
    assert held(peer) == ["b1-0", "b1-2"]


def test_faktory_counts_fetches_and_clears_jobs_of_a_batch(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    for name in ("b1", "b2"):
        dispatcher.do(r.CommitResquBatch(name))
    assert {row["queue"]: row["ready"] for row in peer.ask("queues")["queues"]} == {"batch": 6}
    assert b'"batch":6' in client.ask("INFO").replace(b" ", b"")
    assert b'"jid":"b1-0"' in client.ask("FETCH batch")
    assert b'"jid":"b2-0"' in client.ask("FETCH batch")
    assert client.ask("QUEUE REMOVE batch") == b"+OK\r\n"
    assert held(peer) == []
    assert not dispatcher.state.resqu.batches
