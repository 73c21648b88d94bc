"""The record of requests for jobs: queues and workers, bounded."""

import pytest

from crossdock.model.clock import Now
from crossdock.model.commands.core import LeaseNext, LeaseTerms
from crossdock.model.commands.qless import Pop
from crossdock.model.commands.resqu import TakeNext
from crossdock.server import lease_requests
from crossdock.server.lease_requests import QUEUES_AT_MOST, LeaseRequests
from tests.support.control_peer import ControlPeer
from tests.support.conversation import ClockedFaktory, worker
from tests.support.dispatcher import PlainDispatcher

TERMS = LeaseTerms(60.0, 60.0, 60.0)


def ask(record: LeaseRequests, steady: float, name: str, *queues: str) -> None:
    record.note((LeaseNext("faktory", queues, name, TERMS), Now(0.0, steady)))


def test_a_queue_is_asked_for_when_a_worker_last_named_it() -> None:
    record = LeaseRequests({"a": [1, 2]}, 5.0)
    ask(record, 10.0, "w1", "a", "b")
    ask(record, 12.0, "w2", "b")
    record.note((Pop("qless", 1.0, "c", "w3", 1, 60.0), Now(0.0, 13.0)))
    record.note((TakeNext("resqu", "d"), Now(0.0, 14.0)))
    assert [record.asked_at(queue) for queue in "abcde"] == [10.0, 12.0, 13.0, 14.0, None]
    assert [record.askers(queue) for queue in "ab"] == [2, 0]
    assert record.started == 5.0


def test_the_last_request_of_a_worker_is_kept() -> None:
    record = LeaseRequests({}, 0.0)
    ask(record, 1.0, "w1", "a", "b")
    ask(record, 2.0, "w1", "c")
    assert record.last_asked("w1") == ("c",)
    ask(record, 3.0, "w1", *map(str, range(50)))
    assert record.last_asked("w1") == tuple(map(str, range(QUEUES_AT_MOST)))
    ask(record, 3.0, "", "x")
    assert record.last_asked("") == ()


def test_names_are_bounded_and_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_requests, "NAMES_AT_MOST", 100)
    record = LeaseRequests({}, 0.0)
    for n in range(1_000):
        ask(record, float(n), f"w{n}", f"q{n}")
        record.sort_if_many()
    assert record.asked_at("q0") is None
    assert record.asked_at("q999") == 999.0
    assert record.last_asked("w0") == ()
    assert record.last_asked("w999") == ("q999",)


def test_replies_show_which_workers_ask(dispatcher: PlainDispatcher) -> None:
    protocol = ClockedFaktory(dispatcher)
    peer = ControlPeer(dispatcher, protocol.workers)
    first = worker(dispatcher, protocol, "w1")
    first.send(b'PUSH {"jid":"job-00001","jobtype":"x","queue":"mail","args":[]}\r\n')
    (row,) = peer.ask("queues")["queues"]
    assert (row["asked_s"], row["askers"]) == (None, 0)
    first.send(b"FETCH mail\r\n")
    dispatcher.advance(30.0)
    row = peer.ask("queue", name="mail")["queue"]
    assert (row["asked_s"], row["askers"]) == (30.0, 0)
    first.send(b"FETCH video mail\r\n")
    assert first.is_waiting
    row = peer.ask("queue", name="mail")["queue"]
    assert (row["asked_s"], row["askers"]) == (0.0, 1)
    (shown,) = peer.ask("workers")["workers"]
    assert (shown["worker"], shown["protocol"], shown["queues"]) == ("w1", "faktory", ["video", "mail"])
