"""Tests of the web application without a server and without a network."""

import pytest
from fastapi.testclient import TestClient

from webapp import database
from webapp.main import api
from webapp.tasks import User, app, welcome


@pytest.fixture
def web(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "PATH", str(tmp_path / "webapp.db"))
    with TestClient(api) as client:  # runs the lifespan
        yield client


def test_a_new_user_is_welcomed(web, jobs):
    reply = web.post("/users", json={"name": "Ada"})
    assert reply.status_code == 201
    jobs.assert_pushed(welcome, user=User(id=reply.json()["id"], name="Ada"))
    jobs.drain()
    assert app.handle(reply.json()["job"], welcome).result() == "welcome, Ada"
    assert web.get(f"/jobs/{reply.json()['job']}").json() == {"state": "done"}


def test_nothing_is_pushed_if_the_transaction_fails(web, jobs):
    web.post("/users", json={"name": "Ada"})
    jobs.forget_pushed()
    assert web.post("/users", json={"name": "Ada"}).status_code == 409
    jobs.refute_pushed(welcome)
