"""Long pages of `inspect jobs` are sent in parts, each when the peer has received the one before."""

import re
import time

import pytest

from crossdock.protocols.workq import inspect
from crossdock.protocols.workq.protocol import WorkqProtocol
from crossdock.server.connection import Connection
from tests.support.socketless_server import SocketlessServer, Transport

JOBS = 12
SIZE = 200_000
IDENT = "61a444a0-6128-41c0-8078-cc757d3b%04x"


@pytest.fixture
def server() -> SocketlessServer:
    server = SocketlessServer(WorkqProtocol())
    adds, told = server.connect()
    for number in range(JOBS):
        server.say(adds, f"add {IDENT % number} q 60000 60000 {SIZE}", "x" * SIZE)
        server.say(adds, f"schedule {IDENT % (number + 4096)} q 60000 60000 2030-01-01T00:00:00Z {SIZE}", "y" * SIZE)
    assert told.heard == b"+OK\r\n" * 2 * JOBS
    return server


def jobs_in(said: bytes) -> list[str]:
    """The IDs of a whole reply, whose number must be the announced one."""
    head, rest = said.split(b"\r\n", 1)
    found = []
    while rest:
        top = re.match(rb"(\S+) 1[23]\r\nname q\r\nttr 60000\r\nttl 60000\r\npayload-size (\d+)\r\npayload ", rest)
        assert top is not None, rest[:100]
        rest = rest[top.end() + int(top[2]) :]
        end = re.match(rb"\r\nmax-attempts .*?Z\r\n(time .*?Z\r\n)?", rest, re.DOTALL)
        assert end is not None, rest[:100]
        rest = rest[end.end() :]
        found.append(top[1].decode())
    assert head == b"+OK %d" % len(found)
    return found


def choked(server: SocketlessServer, line: str) -> tuple[Connection, Transport]:
    """A peer that sends a request and then does not read."""
    peer, told = server.connect()
    told.written = peer.pause_writing
    server.say(peer, line)
    return peer, told


@pytest.mark.parametrize("what", ["jobs", "scheduled-jobs"])
def test_a_peer_that_reads_gets_all_of_it_in_order(server: SocketlessServer, what: str) -> None:
    peer, told = server.connect()
    server.say(peer, f"inspect {what} q 0 100", "inspect queue q")
    said, then = told.heard[: -len(TAIL)], told.heard[-len(TAIL) :]
    first = 4096 if what == "scheduled-jobs" else 0
    assert jobs_in(said) == [IDENT % number for number in range(first, first + JOBS)]
    assert then == TAIL, "the next reply follows it"


TAIL = b"+OK 1\r\nq 2\r\nready-len 12\r\nscheduled-len 12\r\n"


def test_a_peer_that_does_not_read_uses_the_memory_of_one_part(server: SocketlessServer) -> None:
    peer, told = choked(server, "inspect jobs q 0 100")
    assert SIZE < len(told.heard) < SIZE + inspect.PART_BYTES + 1_000
    before = len(told.heard)
    other, heard = server.connect()
    server.say(other, "inspect queue q")
    assert heard.heard == TAIL, "other connections are served meanwhile"
    assert len(told.heard) == before
    for number in range(JOBS):
        assert len(told.heard) < (number + 1) * (SIZE + 1_000)
        peer.resume_writing()
        server.sync()
    assert jobs_in(told.heard) == [IDENT % number for number in range(JOBS)]


def test_a_page_shows_the_jobs_at_the_time_of_the_request(server: SocketlessServer) -> None:
    peer, told = choked(server, "inspect jobs q 0 100")
    other, _ = server.connect()
    for number in range(JOBS):
        server.say(other, f"delete {IDENT % number}")
    for _ in range(JOBS):
        peer.resume_writing()
        server.sync()
    assert jobs_in(told.heard) == [IDENT % number for number in range(JOBS)]


def test_a_peer_may_be_lost_in_the_middle(server: SocketlessServer) -> None:
    peer, _ = choked(server, "inspect jobs q 0 100")
    peer.connection_lost(None)
    server.sync()
    assert peer not in server.connections
    assert not peer.is_busy()


def test_a_half_closed_peer_receives_the_whole_page(server: SocketlessServer) -> None:
    peer, told = choked(server, "inspect jobs q 0 100")
    assert peer.eof_received()
    for _ in range(JOBS):
        peer.resume_writing()
        server.sync()
    assert len(jobs_in(told.heard)) == JOBS
    assert told.eof


def test_a_shutdown_in_the_middle_sends_a_limited_part(server: SocketlessServer) -> None:
    """Earlier replies are sent, and of the long reply as much as the reply buffer may hold."""
    peer, told = server.connect()
    peer.data_received(b"inspect queue q\r\n" + b"inspect jobs q 0 100\r\n" * 2)
    peer.shut_down(time.monotonic() + 5)
    server.sync()
    assert told.heard.startswith(TAIL)
    assert SIZE < len(told.heard) < server.limits.reply_buffer_bytes + 2 * SIZE
    assert told.eof


def test_a_short_page_is_one_reply(server: SocketlessServer) -> None:
    adds, _ = server.connect()
    for number in range(100):
        server.say(adds, f"add {IDENT % (8192 + number)} small 60000 60000 1", "x")
    peer, told = server.connect()
    server.say(peer, "inspect jobs small 0 100")
    assert told.writes == 1 and told.heard.startswith(b"+OK 100\r\n")
