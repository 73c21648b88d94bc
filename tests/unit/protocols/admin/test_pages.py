"""Each page starts where the last one ended, whatever changes in between."""

from typing import Any

import pytest

from crossdock.protocols.admin import job_walk
from crossdock.testing.connection import run_out
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, Conversation
from tests.support.dispatcher import PlainDispatcher
from tests.support.five_jobs import LATER, STATES, fetch, five_jobs, flood, push


@pytest.fixture
def peer(dispatcher: PlainDispatcher, protocol: ClockedFaktory) -> ControlPeer:
    return ControlPeer(dispatcher, protocol.workers)


def jids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["jid"] for row in rows]


def test_jobs_of_every_state_in_the_order_of_a_walk(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    rows = peer.ask("jobs")["jobs"]
    assert [(row["jid"], row["state"]) for row in rows] == list(STATES.items())


@pytest.mark.parametrize("state", STATES.values())
def test_jobs_by_state(client: Conversation, peer: ControlPeer, state: str) -> None:
    five_jobs(client)
    assert jids(peer.ask("jobs", states=[state])["jobs"]) == [jid for jid, its in STATES.items() if its == state]
    assert peer.ask("count", states=[state])["count"] == 1


def test_jobs_by_queue_kind_and_age(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    dispatcher.advance(60)
    push(client, "job-young", queue="other", kind="print")
    push(client, "job-later", queue="other", at=LATER)
    assert jids(peer.ask("jobs", queue="other")["jobs"]) == ["job-young", "job-later"]
    assert jids(peer.ask("jobs", kind="print")["jobs"]) == ["job-young"]
    assert peer.ask("jobs", queue="nowhere") == {"jobs": [], "examined": 4, "after": None, "missing": ["queue"]}
    # The retry was due meanwhile, so it has been ready for some seconds only.
    assert jids(peer.ask("jobs", older_than=50)["jobs"]) == ["job-00001", "job-00002", "job-00004", "job-00005"]
    assert peer.ask("count", older_than=50)["count"] == 4
    assert jids(peer.ask("jobs", older_than=3_600)["jobs"]) == []


def test_the_age_of_a_job_is_the_time_in_its_state(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    five_jobs(client)
    dispatcher.advance(10)
    ages = {row["state"]: row["age_s"] for row in peer.ask("jobs")["jobs"]}
    assert ages == {state: pytest.approx(10, abs=1e-3) for state in STATES.values()}


def test_a_row_shows_worker_error_and_times(client: Conversation, peer: ControlPeer) -> None:
    five_jobs(client)
    (leased,) = peer.ask("jobs", states=["leased"])["jobs"]
    assert (leased["worker"], leased["attempts"], leased["priority"]) == ("w1", 1, 2)
    (retrying,) = peer.ask("jobs", states=["retrying"])["jobs"]
    assert (retrying["error"], retrying["failures"], retrying["payload"]) == ("Boom: it broke", 1, "[1]")
    assert retrying["due"] > retrying["since"]


def test_a_long_payload_is_cut_in_a_row_and_whole_in_the_job(client: Conversation, peer: ControlPeer) -> None:
    push(client, "job-00001", args=["ä" * 1_000])
    (row,) = peer.ask("jobs")["jobs"]
    assert len(row["payload"].encode()) < 200
    assert row["payload_bytes"] > 1_000
    assert peer.ask("job", id=1)["job"]["payload"] == ["ä" * 1_000]


@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_pages_show_every_job_once(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer, limit: int
) -> None:
    five_jobs(client)
    for queue in ("a", "b", "z"):
        for n in range(3):
            push(client, f"{queue}-job-000{n}", queue=queue, priority=n + 1)
    seen = jids(peer.all("jobs", limit=limit))
    assert sorted(seen) == sorted(job.jid for job in dispatcher.state.jobs.values())


def test_pages_over_ten_thousand_jobs(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    flood(dispatcher, 6_000)
    flood(dispatcher, 5_000, "later", due=dispatcher.now.wall + 60)
    seen = peer.all("jobs", limit=200)
    assert len(seen) == len({row["number"] for row in seen}) == 11_000


def test_changes_between_two_pages_skip_and_repeat_no_job(
    dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer
) -> None:
    flood(dispatcher, 500)
    first = peer.ask("jobs", limit=100)
    for row in first["jobs"]:  # all listed jobs are deleted, also the job of the cursor
        fetch(client, row["jid"])
        client.ask(f'ACK {{"jid":"{row["jid"]}"}}')
    flood(dispatcher, 10)
    rest = jids(first["jobs"]) + jids(peer.all("jobs", after=first["after"]))
    assert rest == [f"job-{n:08d}" for n in range(1, 511)]


def test_a_flush_between_two_slices(dispatcher: PlainDispatcher, client: Conversation, peer: ControlPeer) -> None:
    flood(dispatcher, 3 * job_walk.SLICE)
    work = peer.work("jobs", kind="rare")
    next(work)
    assert client.ask("FLUSH") == b"+OK\r\n"
    answer = run_out(work)
    assert isinstance(answer, bytes) and b'"jobs":[]' in answer


def test_the_search_for_a_rare_kind_runs_in_slices_and_is_limited(
    dispatcher: PlainDispatcher, peer: ControlPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_walk, "EXAMINED_AT_MOST", 5 * job_walk.SLICE)
    flood(dispatcher, 12 * job_walk.SLICE)
    flood(dispatcher, 1, kind="rare")
    work = peer.work("jobs", kind="rare")
    assert sum(1 for _ in work) == 4  # it stops after five slices
    page = peer.ask("jobs", kind="rare")
    assert (page["jobs"], page["examined"]) == ([], 5 * job_walk.SLICE + 1)  # plus one step for the names of the queues
    assert page["after"] is not None
    assert len(peer.all("jobs", kind="rare")) == 1


def test_a_count_continues_like_a_page(
    dispatcher: PlainDispatcher, peer: ControlPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_walk, "EXAMINED_AT_MOST", 2 * job_walk.SLICE)
    flood(dispatcher, 5 * job_walk.SLICE)
    assert peer.ask("count")["count"] == 5 * job_walk.SLICE  # known without a walk
    step = peer.ask("count", kind="send")
    found = [step["count"]]
    while step["after"] is not None:
        step = peer.ask("count", kind="send", after=step["after"])
        found.append(step["count"])
    assert (sum(found), len(found)) == (5 * job_walk.SLICE, 3)


def test_many_queues_are_walked_in_order(dispatcher: PlainDispatcher, peer: ControlPeer) -> None:
    for n in range(2_500):
        flood(dispatcher, 1, f"queue-{n:05d}")
    assert [row["queue"] for row in peer.all("jobs", limit=200)] == [f"queue-{n:05d}" for n in range(2_500)]
    assert [row["queue"] for row in peer.all("queues", limit=200)] == [f"queue-{n:05d}" for n in range(2_500)]
