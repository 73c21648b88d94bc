"""Filters, pushes and bulk actions of the HTTP API of a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.http import api
from tests.support.server import Server

BULK: Final = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("http")
    with Server(folder / "data", protocols=("faktory", "http")) as running:
        yield running


@pytest.fixture
def web(server: Server) -> Iterator[httpx.Client]:
    with api(server) as client:
        yield client


def ok(answer: httpx.Response) -> Any:
    assert answer.status_code < 300, answer.text
    return answer.json()


def pushed(web: httpx.Client, queue: str, count: int = 1, **fields: Any) -> list[dict[str, Any]]:
    return [
        ok(web.post("/jobs", json={"queue": queue, "kind": "welcome", "args": [each], **fields}))
        for each in range(count)
    ]


def test_a_pushed_job_is_found_by_its_jid(web: httpx.Client) -> None:
    answer = web.post(
        "/jobs", json={"queue": "push", "kind": "welcome", "args": [1], "jid": "jid-12345678", "retries": 3}
    )
    assert answer.status_code == 201
    found = ok(web.get("/jobs", params={"filter": "id:jid-12345678"}))["jobs"]
    assert [(row["number"], row["queue"], row["kind"]) for row in found] == [
        (answer.json()["number"], "push", "welcome")
    ]


@pytest.mark.parametrize("at", ["2126-01-01T00:00:00Z", 4_922_899_200])
def test_a_job_can_be_pushed_for_later(web: httpx.Client, at: str | int) -> None:
    [job] = pushed(web, "later", at=at)
    assert ok(web.get(f"/jobs/{job['number']}"))["job"]["due"].startswith("2126-01-01T00:00:00")


def test_a_time_without_a_zone_is_refused(web: httpx.Client) -> None:
    answer = web.post("/jobs", json={"queue": "q", "kind": "k", "at": "2126-01-01T00:00:00"})
    assert answer.status_code == 400
    assert "zone" in answer.json()["error"]


def test_a_bad_filter_names_its_wrong_word(web: httpx.Client) -> None:
    for path in ("/jobs", "/jobs/count", "/jobs/export"):
        answer = web.get(path, params={"filter": "queue:mail stat:dead"})
        assert answer.status_code == 400
        assert "stat" in answer.json()["error"]


def test_a_bulk_action_counts_first_and_acts_when_the_count_is_confirmed(web: httpx.Client) -> None:
    pushed(web, "bulk", BULK)
    body = {"filter": "queue:bulk state:ready"}
    assert ok(web.post("/jobs/actions/kill", json=body)) == {"count": BULK}
    assert ok(web.get("/jobs/count", params=body))["count"] == BULK  # nothing was changed
    refused = web.post("/jobs/actions/kill", json=body | {"expected": BULK - 1})
    assert refused.status_code == 409
    assert str(BULK) in refused.json()["error"]
    done = web.post("/jobs/actions/kill", json=body | {"expected": BULK})
    assert done.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in done.text.splitlines()]
    assert lines[-1] == {"done": BULK, "total": BULK, "finished": True, "error": None}
    assert ok(web.get("/jobs/count", params={"filter": "queue:bulk state:dead"}))["count"] == BULK


def test_a_bulk_action_without_a_filter_needs_to_name_all(web: httpx.Client) -> None:
    for empty in ({}, {"filter": ""}, {"filter": "  "}):
        answer = web.post("/jobs/actions/delete", json=empty)
        assert answer.status_code == 400
        assert "all" in answer.json()["error"]


def test_a_bulk_move_needs_a_queue(web: httpx.Client) -> None:
    assert web.post("/jobs/actions/move", json={"filter": "queue:bulk"}).status_code == 400


def test_a_leased_job_is_cancelled(server: Server, web: httpx.Client) -> None:
    [job] = pushed(web, "cancel")
    with server.client() as client:
        assert client.fetch("cancel")
        assert ok(web.post(f"/jobs/{job['number']}/cancel")) == {"done": 1}
    assert web.get(f"/jobs/{job['number']}").status_code == 404


def test_a_waiting_job_has_a_reason(web: httpx.Client) -> None:
    [job] = pushed(web, "reason")
    ok(web.post("/queues/reason/pause"))
    why = ok(web.get(f"/jobs/{job['number']}"))["job"]["why"]
    assert why["reason"] == "paused"
    assert "reason" in why["text"]


@pytest.mark.parametrize("path", ["/overview", "/throttles", "/protocols", "/settings", "/stats/rates"])
def test_the_server_describes_itself(web: httpx.Client, path: str) -> None:
    assert ok(web.get(path))


def test_secrets_are_not_among_the_settings(web: httpx.Client) -> None:
    secrets = [row for row in ok(web.get("/settings"))["settings"] if row["name"].endswith("password")]
    assert secrets
    assert {row["value"] for row in secrets} <= {"set", "not set"}


def test_an_export_has_the_jobs_of_its_filter(web: httpx.Client) -> None:
    ok(web.post("/jobs", json={"queue": "export", "kind": "=1+1", "args": []}))
    params = {"filter": "queue:export"}
    lines = web.get("/jobs/export", params=params | {"format": "jsonl"}).text.splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["=1+1"]
    head, row = web.get("/jobs/export", params=params | {"format": "csv"}).text.splitlines()
    assert head.startswith("number,jid,queue,kind,state")
    assert ",'=1+1," in row
