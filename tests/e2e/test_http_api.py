"""The HTTP API of a real server: what it shows and what it changes, compared with the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.command_line import Operator
from tests.support.http import api
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.server import Server

PROTOCOLS: Final = ("faktory", "http")
TOKEN: Final = "0123456789abcdef"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with Server(folder / "data", {"lake.segment_s": 0.2}, protocols=PROTOCOLS) as running:
        yield running


@pytest.fixture
def web(server: Server) -> Iterator[httpx.Client]:
    with api(server) as client:
        yield client


def ok(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def number_of(web: httpx.Client, jid: str) -> int:
    after = None
    while True:
        page = ok(web.get("/jobs", params={"after": after} if after else {}))
        for row in page["jobs"]:
            if row["jid"] == jid:
                return int(row["number"])
        after = page["after"]
        assert after is not None, f"{jid} not found"


def test_a_job_is_shown_with_its_payload_as_it_was_pushed(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push("job-shown", "show", ["<b>&é", 12345678901234567890123, 0.1], jobtype="welcome")
    number = number_of(web, "job-shown")
    answer = web.get(f"/jobs/{number}")
    job = ok(answer)["job"]
    assert job["payload"] == ["<b>&é", 12345678901234567890123, 0.1]
    assert (job["jid"], job["queue"], job["kind"], job["state"], job["origin"]) == (
        "job-shown",
        "show",
        "welcome",
        "ready",
        "faktory",
    )
    assert [step["what"] for step in job["timeline"]] == ["created", "enqueued"]


def test_actions_on_one_job_change_it_or_say_why_not(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push("job-acted", "act")
    number = number_of(web, "job-acted")
    refused = web.post(f"/jobs/{number}/retry")
    assert refused.status_code == 409
    assert f"job {number} is ready" in refused.json()["error"]
    assert ok(web.post(f"/jobs/{number}/move", json={"to": "a/b %"})) == {"done": 1}
    assert ok(web.get("/queues/a%2Fb%20%25"))["queue"]["ready"] == 1
    assert ok(web.post(f"/jobs/{number}/kill")) == {"done": 1}
    assert ok(web.get(f"/jobs/{number}"))["job"]["state"] == "dead"
    assert ok(web.post(f"/jobs/{number}/retry")) == {"done": 1}
    assert ok(web.post(f"/jobs/{number}/tag", json={"tags": ["vip"]}))["tags"] == ["vip"]
    assert {"tag": "vip", "jobs": 1} in ok(web.get("/tags"))["tags"]
    assert ok(web.post(f"/jobs/{number}/delete")) == {"done": 1}
    assert web.get(f"/jobs/{number}").status_code == 404
    assert web.post(f"/jobs/{number}/kill").status_code == 404


def test_a_lease_of_a_lost_worker_is_released(server: Server, web: httpx.Client) -> None:
    with server.client(wid="lost") as client:
        client.push("job-leased", "lease")
        assert client.fetch("lease")
        number = number_of(web, "job-leased")
        held = web.post(f"/jobs/{number}/release")
        assert held.status_code == 409
        assert "connected" in held.json()["error"]
        assert "lost" in [row["worker"] for row in ok(web.get("/workers"))["workers"]]
        assert ok(web.post("/workers/lost/quiet")) == {"done": ["lost"], "unknown": []}
        assert ok(web.post(f"/jobs/{number}/release", json={"force": True})) == {"done": 1}
    assert ok(web.get(f"/jobs/{number}"))["job"]["state"] == "retrying"


def test_a_queue_is_paused_and_resumed(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push("job-paused", "pausing")
        assert ok(web.post("/queues/pausing/pause", json={"reason": "maintenance"})) == {
            "done": ["pausing"],
            "unknown": [],
        }
        queue = ok(web.get("/queues/pausing"))["queue"]
        assert queue["paused"]
        assert queue["pause"]["reason"] == "maintenance"
        assert client.fetch("pausing") is None
        assert ok(web.post("/queues", json={"action": "resume", "names": ["pausing", "no-such"]})) == {
            "done": ["pausing"],
            "unknown": ["no-such"],
        }
        assert client.fetch("pausing")
    assert web.post("/queues/no-such/pause").status_code == 404


def test_changes_are_in_the_audit_trail_with_their_sender(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push("job-audited", "audit")
    number = number_of(web, "job-audited")
    ok(web.post(f"/jobs/{number}/kill"))
    entry = ok(web.get("/audit", params={"limit": 1}))["audit"][0]
    assert (entry["user"], entry["address"], entry["via"], entry["action"], entry["count"]) == (
        "local",
        "127.0.0.1",
        "http",
        "kill",
        1,
    )


def test_pages_continue_at_their_cursor_until_the_last(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push_many(
            [{"jid": f"job-page-{each}", "queue": "paged", "jobtype": "x", "args": []} for each in range(7)]
        )
    seen, after = [], None
    for _ in range(1_000):
        page = ok(web.get("/jobs", params={"limit": 3} | ({"after": after} if after else {})))
        assert len(page["jobs"]) <= 3
        seen += [row["jid"] for row in page["jobs"]]
        after = page["after"]
        if after is None:
            break
    assert sorted(jid for jid in seen if jid.startswith("job-page-")) == [f"job-page-{each}" for each in range(7)]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/jobs/999999999", 404),
        ("GET", "/jobs/99999999999999999999999999", 400),
        ("GET", "/jobs/-1", 400),
        ("GET", "/jobs/abc", 404),
        ("GET", f"/jobs/{'9' * 5_000}", 404),
        ("GET", "/queues/no-such", 404),
        ("GET", f"/queues/{'q' * 2_000}", 400),
        ("GET", "/queues?limit=201", 400),
        ("GET", "/queues?limit=0", 400),
        ("GET", "/queues?limit=x", 400),
        ("GET", "/queues?by=size", 400),
        ("GET", "/jobs?after=nonsense", 400),
        ("GET", "/batches/no-such", 404),
        ("GET", "/schedules/no-such", 404),
        ("GET", "/history/no-such", 400),
        ("POST", "/jobs/999999999/kill", 404),
        ("POST", "/jobs/1/explode", 400),
        ("POST", "/workers/no-such/quiet", 404),
        ("POST", "/schedules/no-such/run", 404),
        ("POST", "/schedules/no-such/remove", 404),
        ("DELETE", "/jobs/1", 405),
        ("GET", "/nothing", 404),
    ],
)
def test_bad_requests_are_answered_with_a_reason(web: httpx.Client, method: str, path: str, status: int) -> None:
    answer = web.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"x"', b'{"queue": 1, "kind": "k"}', b'{"queue":"q","kind":"k","no_such":1}', b"\xff\xfe"],
)
def test_bad_bodies_are_answered_with_a_reason(web: httpx.Client, body: bytes) -> None:
    answer = web.post("/jobs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]


def test_the_history_of_a_job_comes_from_the_lake(server: Server, web: httpx.Client) -> None:
    with server.client() as client:
        client.push("job-past", "history")
        assert client.fetch("history")
        client.ack("job-past")
        client.push("job-mark", "history")
    number = number_of(web, "job-mark") - 1

    def found() -> list[str]:
        answer = web.get(f"/jobs/{number}/history")
        return [event["event"] for event in answer.json().get("events", [])]

    wait_until(lambda: len(found()) >= 3, "the job's events in the lake", IDLE_PATIENCE_S)
    history = ok(web.get(f"/jobs/{number}/history"))
    assert [event["event"] for event in history["events"]] == ["pushed", "leased", "succeeded"]
    assert history["complete"]
    assert history["stopped_at"] == "its push"
    by_jid = ok(web.get("/history/jobs/job-past"))
    assert by_jid["events"] == history["events"]
    lines = web.get(f"/jobs/{number}/history", params={"stream": True}).text.splitlines()
    assert len(lines) == 2
    assert '"finished":true' in lines[-1]


def test_exports_are_downloads(web: httpx.Client) -> None:
    for name, kind in (("csv", "text/csv"), ("jsonl", "application/x-ndjson")):
        answer = web.get("/jobs/export", params={"format": name})
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="jobs.{name}"'
        assert answer.headers["content-type"].startswith(kind)


# The command line on another machine.


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[Server]:
    tokens = folder / "tokens"
    tokens.write_text(f"ops {TOKEN}\n")
    tokens.chmod(0o600)
    settings = {"http.password": "correct horse", "http.token_file": str(tokens)}
    with Server(folder / "locked", settings, protocols=PROTOCOLS) as running:
        yield running


def test_admin_commands_run_on_a_server_elsewhere(locked: Server, tmp_path: Path, folder: Path) -> None:
    with locked.client() as client:
        client.push("job-remote", "far", [1, 12345678901234567890123])
    remote = Operator(tmp_path, server=f"http://127.0.0.1:{locked.ports['http']}", token_file=folder / "tokens")
    here = Operator(folder, server_data="locked")
    assert remote.json("job", "show", "job-remote")["job"]["jid"] == "job-remote"
    assert "12345678901234567890123" in remote.output("job", "show", "job-remote")
    assert [row["queue"] for row in remote.json("queue", "list")["queues"]] == ["far"]
    assert "1" in remote.output("queue", "pause", "far")
    assert here.json("queue", "show", "far")["queue"]["paused"]
    remote.output("job", "kill", "--queue", "far", "--yes")
    assert here.json("job", "show", "job-remote")["job"]["state"] == "dead"
    with api(locked, authorization=f"Bearer {TOKEN}") as web:
        users = {(entry["user"], entry["action"]) for entry in ok(web.get("/audit"))["audit"]}
    assert users == {("ops", "pause"), ("ops", "kill")}


def test_a_command_says_what_is_wrong_with_its_server(locked: Server, tmp_path: Path) -> None:
    where = f"http://127.0.0.1:{locked.ports['http']}"
    open_file = tmp_path / "token"
    open_file.write_text(TOKEN)
    open_file.chmod(0o644)
    operator = Operator(tmp_path)
    for arguments, text in (
        (("--server", where, "queue", "list"), "--token-file"),
        (("--server", where, "--token-file", str(open_file), "queue", "list"), "chmod 600"),
        (("--server", "http://127.0.0.1:1", "queue", "list"), "no server answers"),
        (("--server", "ftp://x", "queue", "list"), "https://HOST:PORT"),
        (("--server", where, "lake", "status"), "leave out --server"),
        (("--server", where, "queue", "list", "--data", "x"), "leave them out with --server"),
    ):
        ended = operator.run(*arguments)
        assert ended.code != 0
        assert text in ended.err


def test_a_password_hash_opens_the_dashboard(tmp_path: Path) -> None:
    ended = Operator(tmp_path).run("password", stdin="correct horse\n")
    assert ended.out.startswith("$argon2id$")
    assert Operator(tmp_path).run("password", stdin="short\n").code == 2


def test_a_schedule_is_added_edited_run_and_removed(web: httpx.Client) -> None:
    body = {"name": "nightly", "every": 3600, "kind": "Sweep", "queue": "chores", "payload": {"a": 1}}
    added = web.post("/schedules", json=body)
    assert added.status_code == 201, added.text
    assert added.json()["schedule"]["payload"] == '{"a":1}'
    assert web.post("/schedules", json=body).status_code == 400  # it exists
    assert ok(web.post("/schedules/nightly/edit", json={"every": 60}))["schedule"]["interval_s"] == 60
    run = ok(web.post("/schedules/nightly/run"))
    assert (run["queue"], run["kind"]) == ("chores", "Sweep")
    assert [row["name"] for row in ok(web.get("/schedules"))["schedules"]] == ["nightly"]
    assert ok(web.post("/schedules/nightly/remove")) == {"done": ["nightly"], "unknown": []}
    assert web.get("/schedules/nightly").status_code == 404
