"""Who is connected, and what is kept of what they have half sent."""

import gc
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from crossdock.protocols.faktory.protocol import FaktoryProtocol
from crossdock.server import connection_registry
from crossdock.server.limits import PIECE, Limits
from tests.support.socketless_server import SocketlessServer, Transport

HELLO = 'HELLO {"v":2}'


@pytest.fixture
def house() -> SocketlessServer:
    return SocketlessServer(FaktoryProtocol())


def peer(house: SocketlessServer) -> tuple[Any, Transport]:
    connection, transport = house.connect()
    house.say(connection, HELLO)
    return connection, transport


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_sockets_that_say_nothing_keep_nobody_out(house: SocketlessServer) -> None:
    house.limits = Limits(connections=2)
    silent = [house.connect() for _ in range(5)]
    (first, one), (_, two), (_, three) = peer(house), peer(house), peer(house)
    assert one.heard.endswith(b"+OK\r\n") and two.heard.endswith(b"+OK\r\n")
    assert three.heard.endswith(b"-ERR too many connections: 3\r\n")
    first.connection_lost(None)
    _, four = peer(house)
    assert four.heard.endswith(b"+OK\r\n"), "the one that was refused takes no place"
    assert len(house.connections) == len(silent) + 3


def test_there_is_a_bound_to_sockets_that_say_nothing(house: SocketlessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_registry, "STRANGERS", 3)
    house.limits = Limits(connections=2)
    transports = [house.connect()[1] for _ in range(6)]
    assert [transport.aborted for transport in transports] == [False] * 5 + [True]


def test_the_client_with_the_largest_incomplete_request_is_closed(
    house: SocketlessServer, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(unfinished_bytes=1_000)
    (one, greedy), (two, modest) = peer(house), peer(house)
    one.data_received(b"PUSH " + b"a" * 595)
    two.data_received(b"PUSH " + b"b" * 195)
    assert house.unfinished == 800
    two.data_received(b"b" * 300)
    assert greedy.aborted and not modest.aborted and house.unfinished == 500
    assert "limits.request_memory_mib" in caplog.text
    one.connection_lost(None)
    two.data_received(b"\n")
    house.sync()
    assert house.unfinished == 0 and modest.heard.count(b"-ERR") == 1
    three, _ = peer(house)
    three.data_received(b"PUSH " + b"a" * 1_000)
    assert three.is_closing() and caplog.text.count("closed the largest") == 1, "the log is not filled"


def test_what_is_worked_on_in_slices_counts_until_it_is_answered(house: SocketlessServer) -> None:
    """Of jobs that are refused it rests between the slices: whoever sends them again and again would fill memory."""
    house.limits = Limits(unfinished_bytes=100_000)
    line = b"PUSHB [" + b",".join([b"{}"] * 20_000) + b"]\n"
    (one, first), (two, second) = peer(house), peer(house)
    for each, at in ((one, 55_000), (two, 50_000)):
        for piece in (line[:at], line[at:]):
            for begin in range(0, len(piece), PIECE):
                each.data_received(piece[begin : begin + PIECE])
    assert first.aborted and not second.aborted and 50_000 <= house.unfinished < len(line)
    one.connection_lost(None)
    house.sync()
    assert second.heard.endswith(b'{"":"jobs must have a reasonable jid parameter"}\r\n') and house.unfinished == 0


def test_a_refusal_counts_until_its_reply_is_sent(house: SocketlessServer, caplog: pytest.LogCaptureFixture) -> None:
    """Of a million jids that are too short they take 200 MB."""
    house.limits = Limits(reply_bytes=1_000_000)
    (one, modest), (two, greedy) = peer(house), peer(house)
    for each, jobs in ((one, 1_000), (two, 10_000)):
        each.data_received(b"PUSHB [" + b",".join(b'{"jid":"%d"}' % n for n in range(jobs)) + b"]\n")
    house.sync()
    assert greedy.aborted and not modest.aborted
    assert "limits.reply_memory_mib" in caplog.text
    two.connection_lost(None)
    house.sync()
    assert modest.heard.count(b"reasonable jid") == 1_000 and house.unfinished == house.unread == 0


@pytest.mark.usefixtures("uncollected")
def test_what_a_peer_had_half_sent_goes_with_it(house: SocketlessServer) -> None:
    """Not when the garbage collector comes: a client that does so again and again would be faster."""
    connection, _ = peer(house)
    lines = connection._session._lines
    connection.data_received(b"PUSH " + b"a" * 1_000_000)
    house.sync()
    assert lines._kept.size == 1_000_005
    connection.connection_lost(None)
    house.sync()
    del connection
    holders = [each for each in gc.get_referrers(lines) if type(each).__name__ != "frame"]
    assert holders == [], "nobody has it any more but this test"


def test_a_line_that_is_too_long_is_not_kept(house: SocketlessServer) -> None:
    connection, transport = peer(house)
    lines = connection._session._lines
    connection.data_received(b"PUSH " + b"a" * (16 * 1024 * 1024 - 8 * PIECE))
    house.sync()
    connection.data_received(b"a" * 8 * PIECE)
    house.sync()
    assert lines._kept.size == 0 and house.unfinished <= 8 * PIECE
    house.loop.advance(3.3)  # two hundred times 16 MiB at 1 GB/s
    house.sync()
    assert b"-ERR" not in transport.heard
    house.loop.advance(0.1)
    house.sync()
    assert transport.heard.endswith(b"-ERR line too long\r\n")


@pytest.mark.usefixtures("uncollected")
def test_what_a_peer_had_asked_for_goes_with_it(house: SocketlessServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While its work rests, too."""
    monkeypatch.setattr("crossdock.protocols.faktory.push.rest", lambda held_up: 60.0)
    connection, _ = peer(house)
    house.say(connection, "PUSHB [" + ",".join(["{}"] * 3_000) + "]")
    work = weakref.ref(connection._pending._work)
    assert work() is not None
    connection.connection_lost(None)
    house.sync()
    house.loop.advance(0)
    assert work() is None


def test_a_stop_while_a_line_that_is_too_long_waits_for_its_answer(house: SocketlessServer) -> None:
    connection, transport = peer(house)
    connection.data_received(b"PUSH " + b"a" * 17_000_000)
    house.sync()
    connection.shut_down(time.monotonic() + 1)
    house.sync()
    assert transport.heard.endswith(b"+OK\r\n-ERR line too long\r\n") and transport.eof
