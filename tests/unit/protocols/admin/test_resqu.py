"""Plans and Resqu batches in the admin protocol."""

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
        "schedule-add", **{"source": "resqu", "name": "shop_weekly", "every": "P1W", "kind": "Jobs\\Weekly"} | members
    )


def plans(peer: ControlPeer) -> list[dict[str, Any]]:
    return list(peer.ask("schedules", source="resqu")["schedules"])


def test_a_plan_is_created_shown_run_and_removed(direct: Direct, peer: ControlPeer) -> None:
    made = add(peer, payload={"a": 1}, uid="w", deferrable_by=30, job_name="Weekly")["schedule"]
    assert (made["name"], made["next"], made["source_id"]) == ("shop_weekly", "2026-11-22T17:55:45Z", "shop")
    assert (made["uid"], made["deferrable_by"], made["job_name"]) == ("w", 30, "Weekly")
    (row,) = plans(peer)
    assert (row["name"], row["source"], row["schedule"], row["next_s"]) == ("shop_weekly", "resqu", "P1W", WEEK_S)
    assert (row["kind"], row["queue"]) == ("Jobs\\Weekly", "unassigned")
    assert direct.say("c", "SMEMBERS", f"{P}plan_list:shop") == ["shop_weekly"]
    direct.dispatcher.advance(WEEK_S + 1)
    (job,) = direct.dispatcher.state.jobs.values()
    assert (job.kind, job.payload) == ("Jobs\\Weekly", b'{"a": 1}')
    assert direct.say("c", "GET", f"{P}unique:w:state") == "queued"
    assert peer.ask("schedule-remove", names=["shop_weekly", "shop_other"]) == {
        "done": ["shop_weekly"], "unknown": ["shop_other"], "refused": [],
    }  # fmt: skip
    assert plans(peer) == []


def test_a_plan_shows_the_queue_of_the_current_mapping(direct: Direct, peer: ControlPeer) -> None:
    add(peer, job_name="Weekly")
    direct.dispatcher.do(SetMapping({"shop": {"Weekly": "slow"}}, {}))
    (row,) = plans(peer)
    assert row["queue"] == "slow"
    direct.dispatcher.advance(WEEK_S + 1)
    (job,) = direct.dispatcher.state.jobs.values()
    assert job.queue == "slow"


def test_a_start_time_in_the_future_is_kept(direct: Direct, peer: ControlPeer) -> None:
    now = direct.dispatcher.now.wall
    assert add(peer, start=now + 60)["schedule"]["next"] == "2026-11-15T17:56:45Z"
    assert add(peer, start=now - 60, name="shop_second", every="PT45S")["schedule"]["next"] == "2026-11-15T17:56:15Z"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"every": "soon"}, "does not have the form P1Y2M3DT4H5M6S"),
        ({"every": "PT0S"}, "is zero"),
        ({"name": "ab"}, "the name of a Resqu plan is SOURCE_ID"),
        ({"queue": "q"}, "queue does not apply to resqu schedules"),
        ({"deferrable_by": 5}, "deferrable_by needs uid"),
        ({"kind": ""}, "'class' must be a string"),
        ({"payload": 5}, "'args' must be an object or an array"),
        ({"name": "shop_" + "x" * 300}, "at most 255 bytes"),
    ],
)
def test_a_wrong_plan_is_refused(peer: ControlPeer, members: dict[str, Any], why: str) -> None:
    assert why in add(peer, **members)["error"]
    assert plans(peer) == []


def test_an_existing_plan_is_not_created_again(peer: ControlPeer) -> None:
    add(peer)
    assert add(peer)["error"] == "schedule shop_weekly exists already; edit it, or choose another name"
    assert len(plans(peer)) == 1


def test_pages_of_plans_and_of_a_source(direct: Direct, peer: ControlPeer) -> None:
    spec = Spec("", "chores", "sweep", b"[]", Form.JSON, 0, Policy())
    direct.dispatcher.do(SetSchedules([Schedule("nightly", "faktory", "0 3 * * *", "UTC", spec, 0.0)]))
    for source in ("a", "b"):
        for ident in range(3):
            add(peer, name=f"{source}_{ident}")
    everything = [f"{source}_{ident}" for source in ("a", "b") for ident in range(3)]
    assert [row["name"] for row in peer.all("schedules", limit=2, source="resqu")] == everything
    assert [row["name"] for row in peer.all("schedules", limit=2, source_id="b")] == everything[3:]
    assert [row["name"] for row in peer.all("schedules", limit=1, source="settings")] == ["nightly"]
    for limit in (1, 2, 6, 7, 50):
        assert [row["name"] for row in peer.all("schedules", limit=limit)] == ["nightly", *everything]
    status = peer.ask("status")["status"]
    assert status["schedules"] == {"settings": 1, "app": 0, "resqu": 6, "qless": 0}


def test_a_plan_is_edited(direct: Direct, peer: ControlPeer) -> None:
    add(peer, payload={"a": 1}, uid="w")
    before = plans(peer)[0]["next"]
    changed = peer.ask("schedule-edit", name="shop_weekly", payload=[2], deferrable_by=5)["schedule"]
    assert (changed["payload"], changed["uid"], changed["deferrable_by"]) == ("[2]", "w", 5)
    assert changed["next"] == before
    changed = peer.ask("schedule-edit", name="shop_weekly", every=60)["schedule"]
    assert (changed["schedule"], changed["next_s"], changed["kind"]) == ("PT60S", 60, "Jobs\\Weekly")
    direct.dispatcher.advance(61)
    (job,) = direct.dispatcher.state.jobs.values()
    assert job.payload == b"[2]"


def test_a_schedule_of_the_settings_file_is_changed_there(direct: Direct, peer: ControlPeer) -> None:
    spec = Spec("", "chores", "sweep", b"[]", Form.JSON, 0, Policy())
    direct.dispatcher.do(SetSchedules([Schedule("nightly", "faktory", "0 3 * * *", "UTC", spec, 0.0)]))
    why = (
        "schedule nightly is defined in /etc/crossdock.toml; change it there and run crossdock reload, because a "
        "restart would undo a change made here"
    )
    assert peer.ask("schedule-edit", name="nightly", kind="other") == {"error": why}
    refused = [{"name": "nightly", "why": why}]
    assert peer.ask("schedule-remove", names=["nightly"]) == {"done": [], "unknown": [], "refused": refused}
    assert peer.ask("schedule", name="nightly")["schedule"]["schedule"] == "0 3 * * *"


def test_a_run_of_a_cron_entry_and_of_a_plan(direct: Direct, peer: ControlPeer) -> None:
    spec = Spec("", "chores", "sweep", b"[1]", Form.JSON, 0, Policy())
    direct.dispatcher.do(SetSchedules([Schedule("nightly", "faktory", "0 3 * * *", "UTC", spec, 0.0)]))
    add(peer, uid="w")
    rows = peer.ask("schedules")
    first, second = peer.ask("schedule-run", name="nightly"), peer.ask("schedule-run", name="shop_weekly")
    assert [job.jid for job in direct.dispatcher.state.jobs.values()] == [first["jid"], second["jid"]]
    assert [(each["queue"], each["kind"]) for each in (first, second)] == [
        ("chores", "sweep"),
        ("unassigned", "Jobs\\Weekly"),
    ]
    assert "is unique, and one is waiting" in peer.ask("schedule-run", name="shop_weekly")["error"]
    assert peer.ask("schedules") == rows


def test_a_name_in_two_sources_needs_the_source(direct: Direct, peer: ControlPeer) -> None:
    add(peer)
    peer.ask("schedule-add", name="shop_weekly", queue="q", kind="K", every=60)
    assert peer.ask("schedule", name="shop_weekly") == {
        "error": "schedule shop_weekly exists in resqu and in qless; give its source"
    }
    assert peer.ask("schedule", name="shop_weekly", source="qless")["schedule"]["interval_s"] == 60
    assert peer.ask("schedule-remove", names=["shop_weekly"], source="resqu")["done"] == ["shop_weekly"]
    assert [row["source"] for row in peer.ask("schedules")["schedules"]] == ["qless"]


def test_batches_are_shown_from_open_to_running(direct: Direct, peer: ControlPeer) -> None:
    commit(direct, BATCH, 3)
    (row,) = peer.ask("batches")["batches"]
    assert (row["batch"], row["protocol"], row["state"], row["total"], row["pending"]) == (
        BATCH,
        "resqu",
        "committed",
        3,
        3,
    )
    assert row["description"] == "Import of s"
    status = peer.ask("status")["status"]
    assert (status["batches"], status["states"]["held"], status["states"]["ready"]) == (1, 3, 0)


def test_a_resqu_worker_of_a_lost_host_is_removed_by_terminate(direct: Direct, peer: ControlPeer) -> None:
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
    assert peer.ask("terminate", all=True) == {"done": [], "unknown": []}, "terminate of all workers does not select it"
    assert peer.ask("quiet", names=[worker]) == {"done": [], "unknown": [worker]}
    assert peer.ask("terminate", names=[worker]) == {"done": [worker], "unknown": []}
    assert peer.ask("workers")["workers"] == []
    assert direct.say("c", "LRANGE", queue, "0", "-1") == [job]
    assert direct.say("c", "SMEMBERS", f"{P}process:node1:pool:unassigned") == []
    assert direct.say("w", "RPOP", f"{P}worker:{worker}") is None, "if the worker is still alive, its buffer is empty"
    assert direct.say("c", "GET", f"{P}unique:u:state") == "queued"
    assert peer.ask("terminate", names=[worker]) == {"done": [], "unknown": [worker]}


def test_a_resqu_allocator_of_a_lost_host_is_removed_by_terminate(direct: Direct, peer: ControlPeer) -> None:
    name = "allocator:node1:job-4711"
    direct.say("c", "LPUSH", f"{P}unassigned", job_text(""))
    direct.say("a", "RPOPLPUSH", f"{P}unassigned", P + name)
    (row,) = peer.ask("workers")["workers"]
    assert (row["worker"], row["hostname"], row["pid"], row["leases"], row["beat_s"]) == (name, "node1", 4711, 0, None)
    assert direct.say("c", "LLEN", f"{P}unassigned") == 0
    assert peer.ask("terminate", names=[name]) == {"done": [name], "unknown": []}
    assert direct.say("c", "LLEN", f"{P}unassigned") == 1
    assert peer.ask("workers")["workers"] == []


def job_text(uid: str) -> str:
    unique = f'"unique":{{"uid":"{uid}"}},' if uid else ""
    return f'{{"class":"C","sourceId":"s","name":"N",{unique}"id":"id-{uid}","queue_time":1.5}}'
