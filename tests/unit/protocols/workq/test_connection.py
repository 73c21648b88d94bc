"""Workq on a connection: leases that the peer never received, and a server that stops while a request waits."""

import itertools
import time
from types import SimpleNamespace

import pytest

from crossdock.model.states import State
from crossdock.protocols.workq.protocol import WorkqProtocol
from crossdock.server.flow_control import PASS_S, REQUESTS_A_PASS
from tests.support.socketless_server import SocketlessServer

RUN = "run 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\nping"
ADD = "add 61a444a0-6128-41c0-8078-cc757d3bd2d8 q 60000 60000 4\r\npong"


@pytest.fixture
def server() -> SocketlessServer:
    return SocketlessServer(WorkqProtocol())


def test_a_lease_whose_reply_was_lost_goes_to_the_next_waiter(server: SocketlessServer) -> None:
    (first, unheard), (second, heard), (adds, _) = (server.connect() for _ in range(3))
    for each in (first, second):
        server.say(each, "lease q 60000")
    adds.data_received(f"{ADD}\r\n".encode())
    server.loop.run()  # leased to the first, and not yet durable
    first.connection_lost(None)
    server.sync()
    assert unheard.heard == b""
    assert heard.heard == b"+OK 1\r\n61a444a0-6128-41c0-8078-cc757d3bd2d8 q 4\r\npong\r\n"
    assert server.look(State.LEASED) == [("q", 1, 0)], "a lease that was not received does not count as an attempt"


def test_slow_requests_of_a_pipeline_are_not_handled_in_one_pass(
    server: SocketlessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty-four of them would block other connections for sixty-four times as long as one."""
    clock = itertools.count(0.0, 1.5 * PASS_S)  # each reading advances it by this
    monkeypatch.setattr("crossdock.server.connection.time", SimpleNamespace(monotonic=lambda: next(clock)))
    peer, told = server.connect()
    ids = [f"61a444a0-6128-41c0-8078-cc757d3bd2d{n}" for n in range(3)]
    peer.data_received("".join(f"add {each} q 60000 60000 4\r\npong\r\n" for each in ids).encode())
    assert len(server.state.jobs) == 1, "then other connections are served"
    server.sync()
    assert told.heard == b"+OK\r\n" * 3
    assert [job.jid for job in server.state.jobs.values()] == ids


def test_later_requests_of_a_pipeline_do_not_delay_the_journal_entry(
    server: SocketlessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 1.5 * PASS_S)
    monkeypatch.setattr("crossdock.server.connection.time", SimpleNamespace(monotonic=lambda: next(clock)))
    peer, _ = server.connect()
    ids = [f"61a444a0-6128-41c0-8078-cc757d3bd2d{n}" for n in range(6)]
    peer.data_received("".join(f"add {each} q 60000 60000 4\r\npong\r\n" for each in ids).encode())
    server.loop.step()
    server.loop.step()
    assert len(server.journal_writer.entries) == 1, "the entry was closed"
    assert len(server.state.jobs) < len(ids), "although more requests were pending"


class TestHalfClosedPeer:
    """The peer may still read, or be gone: it receives replies, but gets no job and no wait."""

    def test_its_requests_are_answered_once_they_are_durable(self, server: SocketlessServer) -> None:
        peer, told = server.connect()
        peer.data_received(f"{ADD}\r\ninspect queue q\r\n".encode())
        assert peer.eof_received(), "replies are pending"
        server.sync()
        assert told.heard == b"+OK\r\n+OK 1\r\nq 2\r\nready-len 1\r\nscheduled-len 0\r\n"
        assert told.eof

    def test_the_connection_closes_if_no_reply_is_pending(self, server: SocketlessServer) -> None:
        peer, _ = server.connect()
        assert not peer.eof_received()
        server.say(peer, ADD)
        peer.data_received(b"inspect que")
        assert not peer.eof_received()

    def test_a_wait_ends_after_the_replies_before_it(self, server: SocketlessServer) -> None:
        peer, told = server.connect()
        peer.data_received(f"{ADD}\r\nlease other 60000\r\ninspect queue q\r\n".encode())
        assert peer.eof_received()
        server.sync()
        assert told.heard == b"+OK\r\n" and told.eof
        assert not server.commit.waiters

    def test_a_request_that_would_wait_is_not_executed(self, server: SocketlessServer) -> None:
        """Its requests were read but not executed: there were too many for one pass."""
        peer, told = server.connect()
        many = 2 * REQUESTS_A_PASS
        peer.data_received(b"inspect queue q\r\n" * many + b"lease q 60000\r\n" + RUN.encode() + b"\r\n")
        assert peer.eof_received()
        server.sync()
        assert told.heard == b"-NOT-FOUND\r\n" * many and told.eof
        assert not server.commit.waiters and not server.state.jobs

    def test_a_job_is_given_back(self, server: SocketlessServer) -> None:
        server.say(server.connect()[0], ADD)
        peer, told = server.connect()
        peer.data_received(b"inspect server\r\nlease q 0\r\ninspect server\r\n")
        assert peer.eof_received()
        server.sync()
        assert told.heard.count(b"server") == 1 and b"pong" not in told.heard
        assert told.closed
        assert server.look(State.READY) == [("q", 0, 0)]
        peer.connection_lost(None)
        server.sync()
        assert server.look(State.READY) == [("q", 0, 0)]


class TestShutdown:
    def stop(self, server: SocketlessServer, *connections: object) -> None:
        for each in connections:
            each.shut_down(time.monotonic() + 1)  # type: ignore[attr-defined]
        server.sync()

    def test_a_run_whose_job_was_leased_meanwhile(self, server: SocketlessServer) -> None:
        """The request was read behind a wait, so it is executed. The worker that has its job has until the server
        stops."""
        runs, told = server.connect()
        works, given = server.connect()
        server.say(runs, "lease other 60000", RUN, "inspect queues 0 10")
        server.say(works, "lease q 60000")
        self.stop(server, runs, works)
        assert told.heard == b"-TIMEOUT\r\n", "a later reply would be taken for the reply to run"
        assert given.heard.startswith(b"+OK 1\r\n61a444a0")
        assert told.eof and given.eof

    def test_a_run_whose_job_is_leased(self, server: SocketlessServer) -> None:
        runs, told = server.connect()
        works, _ = server.connect()
        server.say(runs, RUN, "inspect queues 0 10")
        server.say(works, "lease q 0")
        self.stop(server, runs)
        assert told.heard == b"" and told.eof
        server.say(works, "complete 61a444a0-6128-41c0-8078-cc757d3bd2d8 0", "")
        assert told.heard == b"", "nothing is written after the end"
