"""Every page over the real engine: all states, hostile names in every field, bad input, and a server that is gone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from litestar.testing import TestClient

from crossdock.web.app import create_app
from crossdock.web.options import WebOptions
from crossdock.web.pages import all_handlers
from tests.support.admin_socket import admin_socket
from tests.support.control_peer import ControlPeer
from tests.support.qless_connection import QlessConnection, T
from tests.unit.web.pages.html_page import Page

HERE: Final = "http://127.0.0.1:7420"

#: Breaks out of attributes, elements, scripts and templates that do not escape.
HOSTILE: Final = "\"'><img src=x onerror=alert(1)></script>{{7*191}}javascript:alert(1)"

STATES: Final = ("ready", "scheduled", "leased", "blocked", "failed", "complete")

PAGES: Final = (
    "/",
    "/jobs",
    "/retries",
    "/scheduled",
    "/dead",
    "/queues",
    "/queues?by=ready",
    "/workers",
    "/failures",
    "/failures?by=name",
    "/batches",
    "/schedules",
    "/throttles",
    "/protocols",
    "/history",
    "/history/job?jid=job-1",
    "/server",
    "/audit",
    "/confirm?all=1",
)


class Scene:
    """An engine with jobs, and the dashboard over it."""

    def __init__(self, folder: Path) -> None:
        self.qless = QlessConnection()
        self.admin = ControlPeer(self.qless.dispatcher)
        options = WebOptions(data=folder, address="127.0.0.1:7420", descriptor=0)
        self.web = TestClient(create_app(options), base_url=HERE, raise_server_exceptions=False)

    def page(self, path: str, status: int = 200) -> Page:
        reply = self.web.get(path)
        assert reply.status_code == status, reply.text
        return Page(reply.text)

    def post(self, path: str, **fields: Any) -> Any:
        token = re.search(r'name="csrf_token" value="(\w+)"', self.web.get("/confirm?do=retry&id=1").text)
        assert token is not None
        return self.web.post(path, data={"csrf_token": token[1], **fields}, follow_redirects=False)

    def push(self, **fields: Any) -> int:
        found = self.admin.ask("push", **({"queue": "mail", "kind": "send", "args": [1]} | fields))
        assert "number" in found, found
        number: int = found["number"]
        return number

    def job_in(self, state: str, name: str = "job") -> int:
        """A job in this state whose queue, kind, worker, error and tag have this name."""
        more = ("tags", f'["{name}"]') if '"' not in name else ()
        put = ("put", T, name, name, name, name, "{}")
        match state:
            case "scheduled":
                self.qless.call(*put, "600", *more)
            case "blocked":
                self.push(queue="parents", jid="parent-0001")
                self.qless.call(*put, "0", "depends", '["parent-0001"]', *more)
            case _:
                self.qless.call(*put, "0", *more)
        if state in ("leased", "failed", "complete"):
            self.qless.call("pop", T, name, name, "1")
        if state == "failed":
            self.qless.call("fail", T, name, name, name, name, "{}")
        if state == "complete":
            self.qless.call("complete", T, name, name, name, "{}")
        number: int = self.admin.ask("job", id=name)["job"]["number"]
        return number


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    found = Scene(tmp_path)
    with admin_socket(tmp_path, found.admin), found.web:
        yield found


def test_every_page_of_the_navigation_answers_without_any_job(scene: Scene) -> None:
    for path in PAGES:
        page = scene.page(path)
        assert page.unsafe() == [], path
    linked = {each["href"] for each in scene.page("/").all("a")}
    assert {path for path in PAGES if "?" not in path} <= linked


def test_a_job_is_shown_in_its_state_with_the_actions_that_can_change_it(scene: Scene) -> None:
    for state in STATES:
        number = scene.job_in(state, f"name-of-{state}")
        assert scene.admin.ask("job", id=number)["job"]["state"] == state
        page = scene.page(f"/jobs/{number}")
        assert ("running" if state == "leased" else state) in page.text
        actions = {each["href"].split("&")[0] for each in page.all("a") if each["href"].startswith("/confirm")}
        actions |= {each["action"] for each in page.all("form") if each.get("method") == "post"}
        assert ("/confirm?do=release" in actions) is (state == "leased")
        assert ("/confirm?do=kill" in actions) is (state in ("ready", "scheduled", "blocked"))
        assert ("/actions/jobs/retry" in actions) is (state in ("scheduled", "failed"))
        assert f"crossdock job {'release' if state == 'leased' else 'delete'} {number}" in page.text
        assert f"/api/v1/jobs/{number}/" in page.text


def test_the_reason_why_a_job_waits_is_on_its_page(scene: Scene) -> None:
    number = scene.push()
    scene.admin.ask("pause", names=["mail"], reason="deploy of mail")
    assert "Why it is not running: Queue mail is paused" in scene.page(f"/jobs/{number}").text
    assert "deploy of mail" in scene.page("/queues/mail").text


def test_hostile_names_are_text_on_every_page(scene: Scene) -> None:
    numbers = [scene.job_in(state, f"{HOSTILE}{state}") for state in STATES]
    numbers.append(scene.push(kind=HOSTILE, args=[HOSTILE, {HOSTILE: HOSTILE}], tags=[HOSTILE], custom={"c": HOSTILE}))
    queue = f"{HOSTILE}ready"
    scene.admin.ask("pause", names=[queue], reason=HOSTILE, by={"user": HOSTILE, "address": HOSTILE})
    scene.qless.call("recur", T, HOSTILE, HOSTILE, HOSTILE, "{}", "interval", "60", "0")
    names = {each["href"] for each in scene.page("/queues").all("a") if each["href"].startswith("/queue?")}
    assert len(names) == len(STATES) + 1  # of the jobs, and of the schedule
    shown = 0
    for path in (*PAGES, *(f"/jobs/{number}" for number in numbers), *names, "/confirm?do=delete&id=1"):
        page = scene.page(path)
        assert page.unsafe() == [], path
        assert "1337" not in page.text, path
        shown += HOSTILE in page.text
    assert shown > 16


def test_hostile_input_is_text_in_errors(scene: Scene) -> None:
    for path, status in (
        (f"/jobs?filter={HOSTILE}", 200),
        (f"/queue?name={HOSTILE}", 404),
        (f"/batch?name={HOSTILE}", 404),
        ("/jobs/%22%3E%3Cimg%20src=x%3E", 404),
        ("/jobs/%22%3E%3Cimg%20src=x%3E/history", 200),
        (f"/confirm?do={HOSTILE}", 404),
        (f"/history?table={HOSTILE}&queue={HOSTILE}&days={HOSTILE}", 200),
        (f"/?notice={HOSTILE}&n={HOSTILE}", 200),
    ):
        assert scene.page(path, status).unsafe() == [], path


def test_a_bad_filter_is_explained_and_nothing_is_listed(scene: Scene) -> None:
    scene.push()
    page = scene.page("/jobs?filter=stat:dead")
    assert "This filter is not valid." in page.text
    assert "stat:dead at position 1" in page.text and 'did you mean "state"' in page.text
    assert "select all on this page" not in page.text.lower()


def test_huge_numbers_and_cursors_of_others_are_refused_with_a_page(scene: Scene) -> None:
    assert "is not on the server" in scene.page(f"/jobs/{'9' * 15}", 404).text
    assert "is not on the server" in scene.page("/jobs/no-such-jid", 404).text
    assert "not a cursor" in scene.page("/jobs?after=xyz").text
    scene.page(f"/history?days={'9' * 30}")


def test_lists_have_pages_with_cursors(scene: Scene) -> None:
    numbers = {scene.push() for _ in range(120)}
    path, seen = "/jobs", set()
    for _ in range(3):
        page = scene.page(path)
        seen |= {int(each["value"]) for each in page.all("input") if each.get("name") == "id"}
        path = next((each["href"] for each in page.all("a") if each.get("rel") == "next"), "")
    assert seen == numbers and path == ""


def test_the_search_opens_jobs_and_queues_and_filters_otherwise(scene: Scene) -> None:
    number = scene.push(jid="order-4711")
    for text, where in (
        (str(number), f"/jobs/{number}"),
        ("order-4711", f"/jobs/{number}"),
        ("mail", "/queues/mail"),
        ("state:dead", "/jobs?filter=state%3Adead"),
        ("", "/jobs"),
    ):
        assert scene.web.get("/search", params={"q": text}, follow_redirects=False).headers["location"] == where


def test_a_bulk_action_counts_first_and_changes_only_what_was_counted(scene: Scene) -> None:
    for _ in range(3):
        scene.push(queue="old")
    question = scene.page("/confirm?do=kill&filter=queue:old")
    assert "Kill 3 jobs?" in question.text
    assert "crossdock job kill queue:old" in question.text and '"expected":3' in question.text
    fields = {each["name"]: each["value"] for each in question.all("input") if each.get("type") == "hidden"}
    scene.qless.dispatcher.advance(1.0)
    scene.push(queue="old")
    reply = scene.post("/actions/jobs/kill", **fields)
    assert reply.headers["location"] == "/jobs?filter=queue%3Aold&notice=kill&n=3"
    assert scene.admin.ask("count", states=["dead"])["count"] == 3
    assert "3 jobs moved to the dead jobs." in scene.page(reply.headers["location"]).text


def test_the_choice_of_actions_shows_how_many_jobs_each_would_change(scene: Scene) -> None:
    scene.job_in("leased")
    scene.push()
    text = scene.page("/confirm?all=1").text
    assert "Act on 2 jobs" in text and "Release 1" in text and "Kill 1" in text and "Cancel 2" in text


def test_a_job_that_another_operator_changed_is_reported(scene: Scene) -> None:
    number = scene.push()
    reply = scene.post("/actions/jobs/retry", id=[str(number), "99"])
    text = Page(reply.text).text
    assert "0 jobs of 2 changed" in text and f"{number} is ready" in text and "Not found" in text


def test_pause_and_resume_of_a_queue_name_the_operator_in_the_audit_trail(scene: Scene) -> None:
    scene.push()
    assert scene.post("/actions/queues/pause", name="mail", reason="night").headers["location"].endswith("notice=pause")
    assert scene.admin.ask("queue", name="mail")["queue"]["paused"]
    scene.post("/actions/queues/resume", name="mail")
    assert not scene.admin.ask("queue", name="mail")["queue"]["paused"]
    text = scene.page("/audit").text
    assert "pause" in text and "resume" in text and "local" in text


def test_a_change_needs_a_post(scene: Scene) -> None:
    scene.push()
    for path in ("/actions/jobs/kill", "/actions/queues/pause", "/actions/workers/quiet", "/actions/schedules/run"):
        assert scene.web.get(path).status_code == 405
        assert scene.web.post(path, data={"id": "1", "name": "mail"}).status_code == 403
    assert scene.admin.ask("count", states=["ready"])["count"] == 1


def test_a_server_that_does_not_answer_has_a_page_that_says_so(tmp_path: Path) -> None:
    with Scene(tmp_path).web as web:
        for path in PAGES[:5]:
            reply = web.get(path)
            assert reply.status_code == 503
            assert "does not answer" in reply.text and "No job is lost" in reply.text
            assert Page(reply.text).unsafe() == []


def test_every_page_of_the_dashboard_is_in_the_list_of_this_module() -> None:
    paths = {path for handler in all_handlers() for path in handler.paths if "{" not in path}
    others = {"/live", "/live/rates", "/search", "/queue", "/batch", "/actions/schedules/run", "/server/checks"}
    assert paths - others == {path.partition("?")[0] for path in PAGES}
