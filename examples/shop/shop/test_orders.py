"""Tests of the shop without a server."""

import pytest

from crossdock import NewJob
from crossdock.client.errors import NotUnique
from shop import orders, tasks
from shop.tasks import Order, confirm, pack, report, resize, ship


@pytest.fixture(autouse=True)
def outbox(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "OUTBOX", tmp_path / "outbox.txt")
    return tasks.OUTBOX


def test_an_order_is_shipped_when_all_is_packed(jobs, outbox):
    orders.place(1001, ["tea", "cup"])
    jobs.assert_pushed(confirm, Order(1001, ["tea", "cup"]))
    assert [job.args for job in jobs.pushed(pack)] == [[1001, "tea"], [1001, "cup"]]
    jobs.refute_pushed(ship)
    jobs.drain()
    jobs.assert_pushed(ship, 1001)
    assert outbox.read_text().splitlines()[-1] == "shipped: order 1001"


def test_an_order_is_confirmed_once(jobs):
    orders.place(1001, ["tea"])
    with pytest.raises(NotUnique):
        orders.place(1001, ["tea"])


def test_a_parcel_that_cannot_be_packed_is_tried_again(jobs, outbox, monkeypatch):
    orders.place(1001, ["tea"])
    with monkeypatch.context() as broken:
        broken.setattr(tasks, "OUTBOX", outbox.parent)  # a folder cannot be written
        jobs.drain(raises=False)
    jobs.refute_pushed(ship)
    jobs.clock.advance("1h")
    jobs.drain()
    assert "shipped: order 1001" in outbox.read_text()


def test_pictures_of_other_clients_are_resized(jobs, outbox):
    jobs.client.push(NewJob(kind="ResizePicture", kwargs={"path": "cat.jpg", "width": 640}, queue="unassigned"))
    jobs.assert_pushed(resize, path="cat.jpg")
    jobs.drain()
    assert outbox.read_text() == "resized: cat.jpg to 640\n"


def test_the_report_is_made_every_day(jobs):
    jobs.clock.advance("3 days")
    assert len(jobs.pushed(report)) == 3
