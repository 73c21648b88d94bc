"""The operator commands for qless features on jobs of all protocols: the real command line against a real server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossdock.client.base import connect
from tests.support.command_line import Operator
from tests.support.faktory_client import Client
from tests.support.patience import PATIENCE_S
from tests.support.qless_peer import ViaQless
from tests.support.server import Server

PROTOCOLS = ("faktory", "redis")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data", protocols=PROTOCOLS) as running:
        yield running


@pytest.fixture
def operator(server: Server, tmp_path: Path) -> Operator:
    return Operator.at(tmp_path, server.ports)


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One server for all refused commands."""
    folder = tmp_path_factory.mktemp("refused")
    with Server(folder / "data", protocols=PROTOCOLS) as running:
        yield Operator.at(folder, running.ports)


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client(wid="worker-1") as connected:
        yield connected


@pytest.fixture
def qless(server: Server) -> Iterator[ViaQless]:
    peer = ViaQless(connect("Redis", "127.0.0.1", server.ports["redis"], "", PATIENCE_S), "worker-2")
    yield peer
    peer.close()


def test_jobs_are_listed_by_tag(operator: Operator, client: Client, qless: ViaQless, server: Server) -> None:
    client.push("faktory-1")
    qless.call("put", "w", "mail", "qless-1", "K", "{}", 0, "tags", '["urgent", "vip"]')
    qless.call("tag", "add", "faktory-1", "urgent")
    assert [row["jid"] for row in operator.json("job", "list", "--tag", "urgent")["jobs"]] == ["qless-1", "faktory-1"]
    page = operator.json("job", "list", "--tag", "urgent", "--limit", "1")
    rest = operator.json("job", "list", "--tag", "urgent", "--after", page["after"])
    assert [row["jid"] for row in rest["jobs"]] == ["faktory-1"]
    assert operator.output("job", "list", "--tag", "vip", "--count") == "1 job\n"
    assert "\n  tags       urgent, vip\n" in operator.output("job", "show", "qless-1")
    assert operator.json("job", "retry", "--tag", "urgent", "--yes") == {"matched": 0, "done": 0}
    server.restart()
    assert operator.json("job", "delete", "--tag", "urgent", "--queue", "mail", "--yes") == {"matched": 1, "done": 1}
    assert [row["jid"] for row in operator.json("job", "list", "--tag", "urgent")["jobs"]] == ["faktory-1"]


def test_tags_and_tracks_are_set_and_removed(operator: Operator, client: Client, qless: ViaQless) -> None:
    client.push("faktory-1")
    assert operator.output("job", "tag", "faktory-1", "urgent", "vip") == "job 1: urgent, vip\n"
    assert operator.json("job", "untag", "1", "vip") == {
        "number": 1, "jid": "faktory-1", "tags": ["urgent"], "done": 1,
    }  # fmt: skip
    assert operator.output("job", "untag", "1", "urgent") == "job 1: no tags\n"
    qless.call("put", "w", "mail", "qless-1", "K", "{}", 0, "tags", '["urgent"]')
    assert operator.json("tag", "list") == {"tags": [{"tag": "urgent", "jobs": 1}]}
    assert operator.output("tag", "list", "--top", "1") == "TAG     JOBS\nurgent     1\n"
    assert operator.output("job", "track", "faktory-1", "2") == "tracking 2 jobs\n"
    assert client.fetch() is not None
    rows = operator.json("job", "list", "--tracked")["tracked"]
    assert [(row["jid"], row["job"]["state"]) for row in rows] == [("faktory-1", "leased"), ("qless-1", "ready")]
    operator.output("job", "delete", "qless-1")
    assert re.search(r"^qless-1 +\S+Z  gone +- ", operator.output("job", "list", "--tracked"), re.MULTILINE)
    ended = operator.run("job", "untrack", "qless-1", "missing")
    assert (ended.out, ended.code) == ("untracked 1 job\n", 1)
    assert ended.err == "crossdock: job missing not found; crossdock job list --tracked shows all\n"
    assert operator.json("job", "untrack", "--all") == {"done": ["faktory-1"], "unknown": []}


def test_failures_of_two_protocols_are_listed_and_requeued(
    operator: Operator, client: Client, qless: ViaQless, server: Server
) -> None:
    client.push("faktory-1", retry=-1)
    fetched = client.fetch()
    assert fetched is not None
    client.fail("faktory-1", "broken")
    qless.call("put", "w", "mail", "qless-1", "K", "{}", 0)
    qless.call("pop", "mail", "w", 1)
    qless.call("fail", "qless-1", "w", "Timeout", "too late")
    server.restart()
    groups = {row["failure"]: row for row in operator.json("failure", "list")["failures"]}
    assert {name: row["jobs"] for name, row in groups.items()} == {"Timeout": 1, fetched_group(groups): 1}
    assert groups["Timeout"]["newest"]["error"] == "Timeout: too late"
    assert len(operator.json("failure", "list", "--top", "1")["failures"]) == 1
    assert [row["jid"] for row in operator.json("job", "list", "--failure", "Timeout")["jobs"]] == ["qless-1"]
    asked = operator.run("job", "retry", "--failure", "Timeout", "--to", "slow", stdin="n\n")
    assert asked.code == 1 and asked.err.startswith("1 job to retry\n")
    assert operator.output("job", "retry", "--failure", "Timeout", "--to", "slow", stdin="y\n") == "retried 1 job\n"
    assert operator.json("job", "retry", "faktory-1", "--to", fetched["queue"]) == {
        "done": 1,
        "unknown": [],
        "refused": [],
    }
    rows = operator.json("job", "list")["jobs"]
    assert {(row["jid"], row["queue"], row["state"], row["failures"]) for row in rows} == {
        ("qless-1", "slow", "ready", 0), (fetched["jid"], fetched["queue"], "ready", 0),
    }  # fmt: skip
    assert operator.json("failure", "list") == {"failures": []}


def fetched_group(groups: dict[str, Any]) -> str:
    """The other failure group."""
    (name,) = set(groups) - {"Timeout"}
    return name


def test_schedules_are_listed_and_changed(operator: Operator, client: Client, qless: ViaQless) -> None:
    qless.call("recur", "mail", "sweep", "K", "{}", "interval", 60, 0)
    made = operator.json(
        "schedule", "add", "report", "--queue", "mail", "--kind", "Report", "--every", "1h", "--start", "5m",
        "--payload", "[1]", "--priority", "2", "--retries", "3", "--backlog", "1", "--tag", "a", "--tag", "b",
    )["schedule"]  # fmt: skip
    assert (made["source"], made["interval_s"], made["tags"]) == ("qless", 3600, ["a", "b"])
    assert [row["name"] for row in operator.json("schedule", "list")["schedules"]] == ["report", "sweep"]
    changed = operator.output("schedule", "edit", "sweep", "--every", "10m", "--no-tags")
    assert changed.startswith("schedule sweep, every 10m\n") and "tags" not in changed
    assert operator.output("schedule", "show", "report").splitlines()[-1] == "  payload       [1]"
    listed = operator.output("schedule", "list")
    assert re.search(r"^report +qless +every 1h +- +\S+Z +4m\d+s +mail +Report$", listed, re.MULTILINE)
    wrong = operator.run("schedule", "edit", "sweep", "--payload", "{")
    assert wrong.err.startswith("crossdock: --payload must be a JSON value")
    assert operator.run("schedule", "edit", "other", "--every", "1h").err == "crossdock: schedule other not found\n"
    jid = operator.output("schedule", "run", "report").strip()
    assert operator.json("job", "show", jid)["job"]["kind"] == "Report"
    assert operator.output("schedule", "remove", "report", "sweep") == "removed report\nremoved sweep\n"
    assert operator.run("schedule", "remove", "report").err == (
        "crossdock: schedule report not found; crossdock schedule list shows all\n"
    )


def test_a_job_without_custom_shows_none_and_a_track_outlives_its_job(operator: Operator, client: Client) -> None:
    client.push("faktory-1", custom={"track": 1})
    assert "\n  custom     {" in operator.output("job", "show", "faktory-1")
    operator.output("job", "delete", "faktory-1")
    assert operator.output("job", "show", "faktory-1").startswith("job faktory-1 is gone from the server\n\nprogress\n")
    client.push("faktory-2")
    assert "custom" not in operator.output("job", "show", "faktory-2")


def test_push_and_take_through_qless(operator: Operator, client: Client) -> None:
    first = operator.output("push", "mail", "app.Welcome", '{"to": 42}', "--via", "qless", "--jid", "first").strip()
    assert first == "first"
    second = operator.json(
        "push", "mail", "app.After", "--via", "qless", "--depends-on", "first", "--tag", "vip", "--priority", "3",
        "--retry", "2",
    )["jid"]  # fmt: skip
    found = operator.json("job", "show", second)["job"]
    assert (found["state"], found["depends_on"], found["tags"], found["priority"]) == ("blocked", ["first"], ["vip"], 3)
    assert (found["policy"]["max_failures"], found["payload"]) == (2, {})
    shown = operator.output("job", "take", "empty", "mail", "--via", "qless", "--done")
    assert shown == 'id       first\nqueue    mail\nkind     app.Welcome\npayload  {"to": 42}\ndone\n'
    answer = operator.json("job", "take", "mail", "--via", "qless", "--fail", "no luck")
    assert (answer["job"]["ident"], answer["settled"]) == (second, "failed")
    assert operator.json("job", "show", second)["job"]["error"]["message"] == "no luck"
    ended = operator.run("job", "take", "mail", "--via", "qless", "--done", "--wait", "0.3s")
    assert (ended.err, ended.code) == ("no job within 0.3s in mail\n", 1)
    later = operator.output("push", "mail", "app.Later", "--via", "qless", "--at", "2h").strip()
    assert operator.json("job", "show", later)["job"]["state"] == "scheduled"


def test_a_faktory_job_is_taken_through_qless(operator: Operator, client: Client) -> None:
    client.push("faktory-1")
    answer = operator.json("job", "take", "default", "--via", "qless", "--leave")
    assert answer["job"]["ident"] == "faktory-1"
    assert operator.json("job", "show", "faktory-1")["job"]["lease"]["via"] == "qless"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["push", "mail", "--via", "qless"], "through qless give QUEUE KIND and maybe DATA_JSON"),
        (["push", "mail", "k", "{", "--via", "qless"], "DATA_JSON must be a JSON value"),
        (["push", "mail", "k", "--via", "qless", "--at", "soon"], "--at 'soon' is not a time; write a date and time"),
        (
            ["push", "mail", "k", "--via", "qless", "--at", "2027-01-01T00:00:00"],
            "--at '2027-01-01T00:00:00' names no time zone",
        ),
        (["push", "mail", "k", "--via", "qless", "--ttl", "1h"], "qless has no --ttl"),
        (["push", "mail", "k", "[]", "--tag", "a"], "faktory has no --tag"),
        (["push", "m" * 300, "k", "--via", "qless"], "a name may have at most 255 bytes and no NUL"),
        (["job", "take", "mail", "--via", "qless", "--done", "--listen", "redis=off"], "listen.redis is off"),
        (
            ["job", "take", "mail", "--via", "qless", "--done", "--listen", "redis=127.0.0.1:1"],
            "no Redis server at",
        ),
    ],
)
def test_an_error_is_reported_in_one_sentence(refused: Operator, arguments: list[str], sentence: str) -> None:
    ended = refused.run(*arguments)
    assert ended.code in (1, 2)
    assert ended.err.startswith(f"crossdock: {sentence}")
    assert ended.err.count("\n") == 1


def test_qless_commands_use_the_password(tmp_path: Path) -> None:
    with Server(tmp_path / "data", {"redis.password": "secret"}, protocols=("redis",)) as server:
        settings = {"server_data": "data", "listen_redis": f"127.0.0.1:{server.ports['redis']}"}
        operator = Operator(tmp_path, redis_password="secret", **settings)
        operator.output("push", "mail", "k", "--via", "qless", "--jid", "one")
        assert operator.json("job", "take", "mail", "--via", "qless", "--done")["job"]["ident"] == "one"
        refused = Operator(tmp_path, **settings).run("push", "mail", "k", "--via", "qless")
        address = settings["listen_redis"]
        wanted = f"crossdock: {address} requires a password; set redis.password or CROSSDOCK_REDIS_PASSWORD\n"
        assert refused.err == wanted
        wrong = Operator(tmp_path, redis_password="public", **settings).run("push", "mail", "k", "--via", "qless")
        cure = "set redis.password or CROSSDOCK_REDIS_PASSWORD to the server's"
        assert wrong.err == f"crossdock: wrong password for {address}; {cure}\n"
