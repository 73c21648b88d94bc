"""Log lines for events of jobs: which have one, their fields, and when they are written."""

import logging
from typing import Any

import pytest

from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server.event_log import log_events
from tests.support.socketless_server import SocketlessServer


@pytest.fixture
def server() -> SocketlessServer:
    made = SocketlessServer(FaktoryProtocol())
    made.commit.observers.append(log_events)
    return made


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "crossdock")
    return caplog


def worker(server: SocketlessServer) -> Any:
    connection, _ = server.connect()
    server.say(connection, 'HELLO {"v":2,"wid":"worker-01"}')
    return connection


def failed(server: SocketlessServer, retry: int) -> None:
    peer = worker(server)
    server.say(peer, f'PUSH {{"jid":"job-00001","jobtype":"Mail","queue":"mail","args":["secret"],"retry":{retry}}}')
    server.say(peer, "FETCH mail")
    server.say(peer, 'FAIL {"jid":"job-00001","errtype":"Timeout","message":"secret"}')


def names(lines: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["event"] for record in lines.records]


def test_a_job_that_dies_has_a_line_with_its_fields(server: SocketlessServer, lines: pytest.LogCaptureFixture) -> None:
    failed(server, -1)
    (record,) = lines.records
    assert record.getMessage() == "job job-00001 failed for good (dead)"
    assert record.__dict__["fields"] == {
        "job": "job-00001",
        "number": 1,
        "queue": "mail",
        "kind": "Mail",
        "attempt": 1,
        "worker": "worker-01",
        "protocol": "faktory",
        "state": "dead",
        "error_group": "Timeout",
    }


def test_a_failure_that_is_retried_has_no_line(server: SocketlessServer, lines: pytest.LogCaptureFixture) -> None:
    failed(server, 3)
    assert lines.records == []


def test_a_job_without_retries_is_logged_as_discarded(
    server: SocketlessServer, lines: pytest.LogCaptureFixture
) -> None:
    failed(server, 0)
    assert lines.records[0].__dict__["fields"]["state"] == "discarded"


def test_a_lease_that_expires_has_a_line(server: SocketlessServer, lines: pytest.LogCaptureFixture) -> None:
    peer = worker(server)
    server.say(peer, 'PUSH {"jid":"job-00001","jobtype":"Mail","args":[],"reserve_for":60}')
    server.say(peer, "FETCH default")
    server.loop.advance(61)
    server.say(peer, "INFO")
    assert names(lines) == ["lease-expired"]


def test_killed_jobs_have_one_line_for_all(server: SocketlessServer, lines: pytest.LogCaptureFixture) -> None:
    peer = worker(server)
    for number in range(3):
        server.say(peer, f'PUSH {{"jid":"job-0000{number}","jobtype":"Mail","args":[],"at":"2099-01-01T00:00:00Z"}}')
    server.say(peer, 'MUTATE {"cmd":"kill","target":"scheduled"}')
    server.loop.advance(1)
    assert lines.messages == ["3 jobs were moved to the dead jobs"]
