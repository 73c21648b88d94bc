"""SCHEDULE SYNC and LIST: the schedules of an app, as clients and operators see them."""

import json
from pathlib import Path
from typing import Any

import pytest

from crossdock.journal.snapshot import file as snapshot_file
from crossdock.model.commands.core import SetSchedules, Tick
from tests.support.control_peer import ControlPeer
from tests.support.dispatcher import PlainDispatcher
from tests.support.extended_peer import ExtendedPeer, extended
from tests.support.picture import picture

JOB = {"jobtype": "t", "args": [1]}
HOURLY = {"name": "hourly", "cron": "0 * * * *", "zone": "Europe/Berlin", "job": JOB}
OFTEN = {"name": "often", "every_s": 30, "job": JOB | {"queue": "own"}}


@pytest.fixture
def dispatcher() -> PlainDispatcher:
    return PlainDispatcher()


@pytest.fixture
def peer(dispatcher: PlainDispatcher) -> ExtendedPeer:
    return extended(dispatcher)


def sync(peer: ExtendedPeer, *schedules: Any, app: str = "shop") -> Any:
    return peer.call("SCHEDULE SYNC", {"app": app, "schedules": schedules})


def listed(peer: ExtendedPeer, app: str = "shop") -> dict[str, str]:
    return {each["name"]: each["next"] for each in peer.call("SCHEDULE LIST", {"app": app})}


def test_the_list_shows_what_was_set(peer: ExtendedPeer) -> None:
    assert sync(peer, HOURLY, OFTEN) == "+OK"
    assert peer.call("SCHEDULE LIST", {"app": "shop"}) == [
        HOURLY | {"next": "2026-11-15T18:00:00Z"},
        OFTEN | {"zone": "UTC", "next": "2026-11-15T17:56:15Z"},
    ]
    assert peer.call("SCHEDULE LIST", {"app": "other"}) == []


def test_runs_push_jobs(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    tagged = HOURLY | {"job": JOB | {"tags": ["red"], "keep_result_s": 60, "custom": {"unique_for": 60}}}
    sync(peer, tagged, OFTEN)
    dispatcher.advance(95.0)
    assert len(peer.fetch(10, queues=["own"])) == 3
    dispatcher.advance(300.0)
    [found] = peer.fetch(10)
    assert (found["tags"], found["keep_result"], found["origin"], len(found["jid"])) == (["red"], True, "faktory", 36)


def test_missed_runs_are_made_up_for_by_one(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    sync(peer, OFTEN)
    dispatcher._pass(95.0)
    dispatcher._tick()
    assert len(peer.fetch(10, queues=["own"])) == 1
    assert listed(peer) == {"often": "2026-11-15T17:57:45Z"}


def test_unchanged_times_keep_the_next_run(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    sync(peer, HOURLY, OFTEN)
    dispatcher.advance(10.0)
    changed = OFTEN | {"job": JOB | {"args": [2]}}
    sync(peer, changed)
    assert listed(peer) == {"often": "2026-11-15T17:56:15Z"}
    sync(peer, changed | {"every_s": 31})
    assert listed(peer) == {"often": "2026-11-15T17:56:26Z"}
    before = len(dispatcher.events)
    sync(peer, changed | {"every_s": 31})
    assert len(dispatcher.events) == before


def test_an_app_replaces_only_its_own(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    sync(peer, HOURLY)
    sync(peer, OFTEN, app="other")
    dispatcher.do(SetSchedules([]))
    assert (list(listed(peer)), list(listed(peer, "other"))) == (["hourly"], ["often"])
    sync(peer)
    assert (list(listed(peer)), list(listed(peer, "other"))) == ([], ["often"])


def test_they_are_durable(dispatcher: PlainDispatcher, peer: ExtendedPeer, tmp_path: Path) -> None:
    sync(peer, HOURLY, OFTEN)
    assert listed(extended(dispatcher.restarted())) == listed(peer)
    file = tmp_path / "snapshot"
    snapshot_file.write(file, dispatcher.state, 1, dispatcher.now.wall, dispatcher.now.steady)
    loaded = snapshot_file.load(file).state
    assert picture(loaded) == picture(dispatcher.state)


def test_a_flush_removes_them(peer: ExtendedPeer) -> None:
    sync(peer, HOURLY)
    peer.ask("FLUSH")
    assert listed(peer) == {}


def test_a_full_server_leaves_runs_out(dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
    sync(peer, OFTEN)

    dispatcher._pass(31.0)
    dispatcher.do(Tick(500, 0.0))
    assert not dispatcher.state.jobs
    assert listed(peer) == {"often": "2026-11-15T17:56:45Z"}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": ""}, "the name of a schedule must have 1 to 255 bytes"),
        ({"every_s": 30}, "schedule hourly: give either cron or every_s"),
        ({"cron": None}, "schedule hourly: give either cron or every_s"),
        ({"cron": None, "every_s": 0.5}, "schedule hourly: every_s must be from 1 to 31622400"),
        ({"cron": "* * *"}, 'schedule hourly: cron "* * *" in zone "Europe/Berlin" is invalid: it has 3 fields'),
        (
            {"cron": "@every 30"},
            'schedule hourly: cron "@every 30" in zone "Europe/Berlin" is invalid: it has 2 fields',
        ),
        ({"job": {"args": []}}, "schedule hourly: jobs must have a jobtype parameter"),
        ({"job": []}, "schedule hourly: invalid job: Expected `object`, got `array`"),
        ({"job": JOB | {"once": True}}, "schedule hourly: job must not have once: these apply to a single job"),
        ({"job": JOB | {"at": "x"}}, "schedule hourly: job must not have at: these apply to a single job"),
        (
            {"job": JOB | {"depends_on": ["a"]}},
            "schedule hourly: job must not have depends_on: these apply to a single job",
        ),
        (
            {"job": JOB | {"custom": {"bid": "b"}}},
            "schedule hourly: job must not have bid: these apply to a single job",
        ),
        ({"job": JOB | {"args": ["x" * 70_000]}}, "schedule hourly: job must not be longer than 65536 bytes"),
    ],
)
def test_wrong_schedules(peer: ExtendedPeer, changes: dict[str, Any], error: str) -> None:
    sync(peer, OFTEN)
    assert sync(peer, HOURLY | changes) == f"-ERR {error}"
    assert list(listed(peer)) == ["often"]


def test_an_unknown_zone(peer: ExtendedPeer) -> None:
    assert sync(peer, HOURLY | {"zone": "Nowhere/Here"}).startswith('-ERR schedule hourly: cron "0 * * * *" in zone')


def test_wrong_requests(peer: ExtendedPeer) -> None:
    assert sync(peer, HOURLY, HOURLY) == "-ERR schedule hourly is defined twice"
    for app in ("", "a b", "a:b", "x" * 65):
        error = "-ERR app must have 1 to 64 letters, digits, dots, hyphens and underscores"
        assert sync(peer, app=app) == error
        assert peer.call("SCHEDULE LIST", {"app": app}) == error
    assert peer.ask("SCHEDULE DROP {}").startswith(b"-ERR invalid SCHEDULE: write")
    assert sync(peer, *[HOURLY] * 1_001).startswith("-ERR invalid SCHEDULE SYNC: Expected `array` of length <= 1000")


class TestOperators:
    def test_the_listing(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        sync(peer, HOURLY, OFTEN)
        control = ControlPeer(dispatcher)
        rows = control.ask("schedules")["schedules"]
        assert [(row["name"], row["source"], row["schedule"], row["interval_s"]) for row in rows] == [
            ("shop:hourly", "app", "0 * * * *", None),
            ("shop:often", "app", None, 30.0),
        ]
        shown = control.ask("schedule", name="shop:often")["schedule"]
        assert (shown["queue"], shown["kind"], json.loads(shown["payload"])) == ("own", "t", [1])

    def test_run_edit_and_remove(self, dispatcher: PlainDispatcher, peer: ExtendedPeer) -> None:
        sync(peer, HOURLY, OFTEN)
        control = ControlPeer(dispatcher)
        control.ask("schedule-run", name="shop:often")
        assert len(peer.fetch(5, queues=["own"])) == 1
        refused = control.ask("schedule-edit", name="shop:often", every=5)
        assert "change it in the app's code" in str(refused)
        assert control.ask("schedule-remove", names=["shop:often", "often"]) | {"ok": True} == {
            "ok": True,
            "done": ["shop:often"],
            "unknown": ["often"],
            "refused": [],
        }
        assert list(listed(peer)) == ["hourly"]
