"""The Workq door behind a connection: leases nobody heard of, and a server that stops while somebody waits."""

import itertools
import time
from types import SimpleNamespace

import pytest

from crossdock.model.states import State
from crossdock.protocols.workq.protocol import WorkqProtocol
from crossdock.server.limits import PASS_S, REQUESTS_A_PASS
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
    server.loop.run()  # decided for the first, and on its way to the disk
    first.connection_lost(None)
    server.sync()
    assert unheard.heard == b""
    assert heard.heard == b"+OK 1\r\n61a444a0-6128-41c0-8078-cc757d3bd2d8 q 4\r\npong\r\n"
    assert server.look(State.LEASED) == [("q", 1, 0)], "what nobody heard of is no attempt"


def test_heavy_requests_of_a_pipeline_are_not_served_in_one_go(
    server: SocketlessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixty-four of them would hold everybody else up for sixty-four times as long as one."""
    clock = itertools.count(0.0, 1.5 * PASS_S)  # each look at it is so much later
    monkeypatch.setattr("crossdock.server.connection.time", SimpleNamespace(monotonic=lambda: next(clock)))
    peer, told = server.connect()
    ids = [f"61a444a0-6128-41c0-8078-cc757d3bd2d{n}" for n in range(3)]
    peer.data_received("".join(f"add {each} q 60000 60000 4\r\npong\r\n" for each in ids).encode())
    assert len(server.state.jobs) == 1, "then it is the others' turn"
    server.sync()
    assert told.heard == b"+OK\r\n" * 3
    assert [job.jid for job in server.state.jobs.values()] == ids


def test_what_follows_of_a_pipeline_holds_nobody_elses_batch_open(
    server: SocketlessServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(0.0, 1.5 * PASS_S)
    monkeypatch.setattr("crossdock.server.connection.time", SimpleNamespace(monotonic=lambda: next(clock)))
    peer, _ = server.connect()
    ids = [f"61a444a0-6128-41c0-8078-cc757d3bd2d{n}" for n in range(6)]
    peer.data_received("".join(f"add {each} q 60000 60000 4\r\npong\r\n" for each in ids).encode())
    server.loop.step()
    server.loop.step()
    assert len(server.journal_writer.batches) == 1, "it was closed"
    assert len(server.state.jobs) < len(ids), "though more was to come"


class TestAPeerThatSendsNoMore:
    """It may listen or be gone: it hears what it asked for, and is neither given a job nor waited for."""

    def test_what_it_asked_for_is_answered_once_it_is_on_disk(self, server: SocketlessServer) -> None:
        peer, told = server.connect()
        peer.data_received(f"{ADD}\r\ninspect queue q\r\n".encode())
        assert peer.eof_received(), "there is something to say"
        server.sync()
        assert told.heard == b"+OK\r\n+OK 1\r\nq 2\r\nready-len 1\r\nscheduled-len 0\r\n"
        assert told.eof

    def test_nothing_is_owed(self, server: SocketlessServer) -> None:
        peer, _ = server.connect()
        assert not peer.eof_received()
        server.say(peer, ADD)
        peer.data_received(b"inspect que")
        assert not peer.eof_received()

    def test_what_waits_ends_behind_what_came_before(self, server: SocketlessServer) -> None:
        peer, told = server.connect()
        peer.data_received(f"{ADD}\r\nlease other 60000\r\ninspect queue q\r\n".encode())
        assert peer.eof_received()
        server.sync()
        assert told.heard == b"+OK\r\n" and told.eof
        assert not server.turn.waits

    def test_what_would_wait_when_it_is_over(self, server: SocketlessServer) -> None:
        """Its requests were read already, but not carried out: there were too many for one go."""
        peer, told = server.connect()
        many = 2 * REQUESTS_A_PASS
        peer.data_received(b"inspect queue q\r\n" * many + b"lease q 60000\r\n" + RUN.encode() + b"\r\n")
        assert peer.eof_received()
        server.sync()
        assert told.heard == b"-NOT-FOUND\r\n" * many and told.eof
        assert not server.turn.waits and not server.state.jobs

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


class TestAStop:
    def stop(self, server: SocketlessServer, *connections: object) -> None:
        for each in connections:
            each.shut_down(time.monotonic() + 1)  # type: ignore[attr-defined]
        server.sync()

    def test_a_run_whose_job_another_was_given_meanwhile(self, server: SocketlessServer) -> None:
        """It was read behind a wait, so it is carried out; whoever has its job has as much time as the server."""
        runs, told = server.connect()
        works, given = server.connect()
        server.say(runs, "lease other 60000", RUN, "inspect queues 0 10")
        server.say(works, "lease q 60000")
        self.stop(server, runs, works)
        assert told.heard == b"-TIMEOUT\r\n", "what follows would be taken for the answer to run"
        assert given.heard.startswith(b"+OK 1\r\n61a444a0")
        assert told.eof and given.eof

    def test_a_run_whose_job_is_being_worked_on(self, server: SocketlessServer) -> None:
        runs, told = server.connect()
        works, _ = server.connect()
        server.say(runs, RUN, "inspect queues 0 10")
        server.say(works, "lease q 0")
        self.stop(server, runs)
        assert told.heard == b"" and told.eof
        server.say(works, "complete 61a444a0-6128-41c0-8078-cc757d3bd2d8 0", "")
        assert told.heard == b"", "nothing is written behind the end"
