"""A session that raises an exception: only its own connection is closed, and no job is lost."""

import logging
from typing import Any

import pytest

from crossdock.model.states import State
from crossdock.protocols.base import Answer
from crossdock.protocols.faktory.job import show
from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server.pending import guarded_wait
from tests.support.socketless_server import SocketlessServer, Transport


def push(jid: str) -> str:
    return f'PUSH {{"jid":"{jid}","jobtype":"x","args":[]}}'


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> SocketlessServer:
    """A server whose protocol cannot show one of its jobs."""

    def faulty(job: Any) -> bytes:
        if job.jid == "broken-one":
            raise OverflowError("cannot convert float infinity to integer")
        return show(job)

    monkeypatch.setattr("crossdock.protocols.faktory.session.show", faulty)
    return SocketlessServer(FaktoryProtocol())


def worker(server: SocketlessServer) -> tuple[Any, Transport]:
    connection, transport = server.connect()
    server.say(connection, 'HELLO {"v":2,"wid":"worker-01"}')
    return connection, transport


def is_logged(caplog: pytest.LogCaptureFixture) -> bool:
    return [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        "a faktory request failed; its connection is closed"
    ]


@pytest.mark.parametrize("behind", [(), ("PUSH {}",)], ids=["alone", "with another behind it"])
def test_the_job_is_given_back_and_the_connection_closed(
    server: SocketlessServer, caplog: pytest.LogCaptureFixture, behind: tuple[str, ...]
) -> None:
    pushes, _ = worker(server)
    server.say(pushes, push("broken-one"))
    fetches, heard = worker(server)
    before = heard.heard
    server.say(fetches, "FETCH default", *behind)
    assert heard.heard == before and heard.eof, "closed without a reply"
    assert server.look(State.READY) == [("x", 0, 0)], "not counted"
    assert is_logged(caplog)


def test_a_push_does_not_fail_with_the_waiter_it_serves(
    server: SocketlessServer, caplog: pytest.LogCaptureFixture
) -> None:
    fetches, heard = worker(server)
    server.say(fetches, "FETCH default")
    pushes, said = worker(server)
    server.say(pushes, push("broken-one"))
    assert said.heard.endswith(b"+OK\r\n") and not said.eof
    assert heard.eof and server.look(State.READY) == [("x", 0, 0)]
    assert is_logged(caplog)
    server.say(pushes, push("sound-one"))
    assert said.heard.endswith(b"+OK\r\n+OK\r\n") and not said.eof


def test_a_wait_that_fails_at_its_deadline_closes_its_connection(
    server: SocketlessServer, caplog: pytest.LogCaptureFixture
) -> None:
    fetches, heard = worker(server)
    server.say(fetches, "FETCH default")

    def fail(late: bool) -> Answer:
        raise OverflowError(late)

    waiting = next(iter(server.commit.waiters.tickets.values()))
    waiting.wait = waiting.wait._replace(
        ask=guarded_wait(waiting.wait._replace(ask=fail), fetches.log.request_failed).ask
    )
    server.loop.advance(2.1)
    server.sync()
    assert heard.eof and is_logged(caplog)
