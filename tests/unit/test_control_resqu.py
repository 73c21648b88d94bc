"""Plans and Resqu's batches as the operator sees and changes them."""

from typing import Any

import pytest

from crossdock.model.commands.core import SetSchedules
from crossdock.model.commands.resqu import SetMapping
from crossdock.model.job import Form, Spec
from crossdock.model.policies import Policy
from crossdock.model.records import Schedule
from tests.resqu.saying import BATCH, P, commit
from tests.resqu.speaking import Direct
from tests.support.control_peer import ControlPeer

WEEK_S = 7 * 86_400


@pytest.fixture
def direct() -> Direct:
    return Direct()


@pytest.fixture
def peer(direct: Direct) -> ControlPeer:
    return ControlPeer(direct.dispatcher)


def add(peer: ControlPeer, **members: Any) -> dict[str, Any]:
    return peer.ask(
        "plan-add", **{"source": "shop", "interval": "P1W", "kind": "Jobs\\Weekly", "id": "weekly"} | members
    )


def test_a_plan_is_made_shown_run_and_removed(direct: Direct, peer: ControlPeer) -> None:
    made = add(peer, args={"a": 1}, uid="w", deferrable_by=30, name="Weekly")
    assert made == {"plan": "shop_weekly", "next": "2026-11-22T17:55:45Z"}
    (row,) = peer.ask("plans")["plans"]
    assert (row["plan"], row["source"], row["interval"], row["next_s"]) == ("shop_weekly", "shop", "P1W", WEEK_S)
    assert (row["kind"], row["queue"]) == ("Jobs\\Weekly", "unassigned")
    assert direct.say("c", "SMEMBERS", f"{P}plan_list:shop") == ["shop_weekly"]
    direct.dispatcher.advance(WEEK_S + 1)
    (job,) = direct.dispatcher.state.jobs.values()
    assert (job.kind, job.payload) == ("Jobs\\Weekly", b'{"a": 1}')
    assert direct.say("c", "GET", f"{P}unique:w:state") == "queued"
    assert peer.ask("plan-rm", plans=["shop_weekly", "shop_other"]) == {
        "done": ["shop_weekly"], "unknown": ["shop_other"],
    }  # fmt: skip
    assert peer.ask("plans")["plans"] == []


def test_a_plan_shows_where_its_jobs_go_by_the_mapping_of_today(direct: Direct, peer: ControlPeer) -> None:
    add(peer, name="Weekly")
    direct.dispatcher.do(SetMapping({"shop": {"Weekly": "slow"}}, {}))
    (row,) = peer.ask("plans")["plans"]
    assert row["queue"] == "slow"
    direct.dispatcher.advance(WEEK_S + 1)
    (job,) = direct.dispatcher.state.jobs.values()
    assert job.queue == "slow"


def test_a_start_is_kept_if_it_is_still_to_come(direct: Direct, peer: ControlPeer) -> None:
    now = direct.dispatcher.now.wall
    assert add(peer, start=now + 60)["next"] == "2026-11-15T17:56:45Z"
    assert add(peer, start=now - 60, id="second", interval="PT45S")["next"] == "2026-11-15T17:56:15Z"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"interval": "soon"}, "is not written like P1Y2M3DT4H5M6S"),
        ({"interval": "PT0S"}, "is no time at all"),
        ({"source": "a_b"}, "must not have _"),
        ({"kind": ""}, "'class' must be a string"),
        ({"args": 5}, "'args' must be an object or an array"),
        ({"id": "x" * 300}, "more than 255 bytes"),
    ],
)
def test_a_wrong_plan_is_refused(peer: ControlPeer, members: dict[str, Any], why: str) -> None:
    assert why in add(peer, **members)["error"]
    assert peer.ask("plans")["plans"] == []


def test_a_plan_that_is_there_is_not_made_again(peer: ControlPeer) -> None:
    add(peer)
    assert add(peer)["error"] == "there is a plan shop_weekly already; remove it first, or give another id"
    assert add(peer, id=None)["plan"].startswith("shop_")
    assert len(peer.ask("plans")["plans"]) == 2


def test_pages_of_plans_and_of_a_source(direct: Direct, peer: ControlPeer) -> None:
    spec = Spec("", "chores", "sweep", b"[]", Form.JSON, 0, Policy())
    direct.dispatcher.do(SetSchedules([Schedule("nightly", "faktory", "0 3 * * *", "UTC", spec, 0.0)]))
    for source in ("a", "b"):
        for ident in range(3):
            add(peer, source=source, id=str(ident))
    everything = [f"{source}_{ident}" for source in ("a", "b") for ident in range(3)]
    assert [row["plan"] for row in peer.all("plans", limit=2)] == everything
    assert [row["plan"] for row in peer.all("plans", limit=2, source="b")] == everything[3:]
    assert [row["cron"] for row in peer.all("cron", limit=1)] == ["nightly"]
    status = peer.ask("status")["status"]
    assert (status["plans"], status["cron"]) == (6, 1)


def test_batches_are_shown_from_open_to_running(direct: Direct, peer: ControlPeer) -> None:
    commit(direct, BATCH, 3)
    (row,) = peer.ask("batches")["batches"]
    assert (row["batch"], row["door"], row["state"], row["total"], row["pending"]) == (
        BATCH,
        "resqu",
        "committed",
        3,
        3,
    )
    assert row["description"] == "Import of s"
    status = peer.ask("status")["status"]
    assert (status["batches"], status["states"]["held"], status["states"]["ready"]) == (1, 3, 0)


def test_a_worker_whose_host_never_comes_back(direct: Direct, peer: ControlPeer) -> None:
    worker, queue = "node1~unassigned~s~4711", f"{P}unassigned"
    direct.say("w", "SADD", f"{P}process:node1:pool:unassigned", worker)
    job = job_text("u")
    assert direct.say("c", "SETNX", f"{P}unique:u:state", "queued") == 1
    direct.say("c", "LPUSH", queue, job)
    assert peer.ask("workers")["workers"] == []
    assert direct.say("w", "RPOPLPUSH", f"{P}static:queue:unassigned", f"{P}worker:{worker}") == job
    direct.dispatcher.advance(7)
    (row,) = peer.ask("workers")["workers"]
    assert (row["worker"], row["hostname"], row["pid"], row["labels"]) == (worker, "node1", 4711, ["resqu"])
    assert (row["leases"], row["beat_s"], row["connections"]) == (1, 7.0, 0)
    assert peer.ask("terminate", all=True) == {"done": [], "unknown": []}, "not by accident"
    assert peer.ask("quiet", workers=[worker]) == {"done": [], "unknown": [worker]}
    assert peer.ask("terminate", workers=[worker]) == {"done": [worker], "unknown": []}
    assert peer.ask("workers")["workers"] == []
    assert direct.say("c", "LRANGE", queue, "0", "-1") == [job]
    assert direct.say("c", "SMEMBERS", f"{P}process:node1:pool:unassigned") == []
    assert direct.say("w", "RPOP", f"{P}worker:{worker}") is None, "a worker that was alive all the same sees it"
    assert direct.say("c", "GET", f"{P}unique:u:state") == "queued"
    assert peer.ask("terminate", workers=[worker]) == {"done": [], "unknown": [worker]}


def test_an_allocator_whose_host_never_comes_back(direct: Direct, peer: ControlPeer) -> None:
    name = "allocator:node1:job-4711"
    direct.say("c", "LPUSH", f"{P}unassigned", job_text(""))
    direct.say("a", "RPOPLPUSH", f"{P}unassigned", P + name)
    (row,) = peer.ask("workers")["workers"]
    assert (row["worker"], row["hostname"], row["pid"], row["leases"], row["beat_s"]) == (name, "node1", 4711, 0, None)
    assert direct.say("c", "LLEN", f"{P}unassigned") == 0
    assert peer.ask("terminate", workers=[name]) == {"done": [name], "unknown": []}
    assert direct.say("c", "LLEN", f"{P}unassigned") == 1
    assert peer.ask("workers")["workers"] == []


def job_text(uid: str) -> str:
    unique = f'"unique":{{"uid":"{uid}"}},' if uid else ""
    return f'{{"class":"C","sourceId":"s","name":"N",{unique}"id":"id-{uid}","queue_time":1.5}}'
