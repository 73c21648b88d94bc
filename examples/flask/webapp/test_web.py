"""Tests of the web application without a server and without a network."""

import pytest

from webapp import database
from webapp.tasks import app, welcome
from webapp.web import web


@pytest.fixture
def browser(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATH", str(tmp_path / "webapp.db"))
    return web.test_client()


def test_a_new_user_is_welcomed(browser, jobs):
    reply = browser.post("/users", json={"name": "Ada"})
    assert reply.status_code == 201
    jobs.assert_pushed(welcome, user_id=reply.json["id"])
    jobs.drain()
    assert app.handle(reply.json["job"], welcome).result() == "welcome, Ada"
    assert browser.get(f"/jobs/{reply.json['job']}").json == {"state": "done"}


def test_nothing_is_pushed_if_the_transaction_fails(browser, jobs):
    browser.post("/users", json={"name": "Ada"})
    jobs.forget_pushed()
    assert browser.post("/users", json={"name": "Ada"}).status_code == 409
    jobs.refute_pushed(welcome)


def test_the_user_is_greeted_at_once(browser, jobs):
    with jobs.inline():
        reply = browser.post("/users", json={"name": "Bob"})
        assert browser.get(f"/jobs/{reply.json['job']}").json == {"state": "done"}
