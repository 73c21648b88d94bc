"""Tests of the views without a server and without a network."""

import pytest
from django.db import transaction
from django.test import Client

from people.models import User
from people.tasks import app, welcome


@pytest.fixture
def browser():
    return Client()


def sign_up(browser, name):
    return browser.post("/users", {"name": name}, content_type="application/json")


def test_a_new_user_is_welcomed(browser, jobs):
    reply = sign_up(browser, "Ada")
    assert reply.status_code == 201
    jobs.assert_pushed(welcome, user_id=reply.json()["id"])
    jobs.drain()
    assert app.handle(reply.json()["job"], welcome).result() == "welcome, Ada"
    assert User.objects.get(name="Ada").welcomed
    assert browser.get(f"/jobs/{reply.json()['job']}").json() == {"state": "done"}


def test_nothing_is_pushed_if_the_transaction_fails(browser, jobs):
    with transaction.atomic():
        sign_up(browser, "Ada")
        transaction.set_rollback(True)
    jobs.refute_pushed(welcome)
    assert not User.objects.exists()


def test_a_name_is_taken_once(browser, jobs):
    sign_up(browser, "Ada")
    assert sign_up(browser, "Ada").status_code == 409
    assert len(jobs.pushed(welcome)) == 1
