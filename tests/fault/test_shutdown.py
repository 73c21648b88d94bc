"""SIGTERM under load: received requests are answered and no acknowledged change is lost (testing.md section 19)."""

import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from crossdock.journal.data_dir import DataDir
from crossdock.journal.recovery import recover
from crossdock.journal.sqlite.journal import SqliteJournal
from tests.support.faktory_client import Client, Gone, Refused, job
from tests.support.patience import PATIENCE_S
from tests.support.server import Server
from tests.support.stalls import Stalls

pytestmark = [pytest.mark.fault, pytest.mark.alone]

SHUTDOWN_S = 2.0
BYE = b"-ERR shutdown in progress\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def jobs(data: Path) -> set[str]:
    journal = SqliteJournal(DataDir(data))
    try:
        return set(recover(journal).state.jids)
    finally:
        journal.close()


class Pusher(threading.Thread):
    """Pushes, several jobs at a time, until the server announces its shutdown."""

    def __init__(self, server: Server, name: str) -> None:
        super().__init__(daemon=True)
        self._client = server.client()
        self._prefix = name
        self.acknowledged: list[str] = []
        self.bye = b""
        self.begun = threading.Event()

    def run(self) -> None:
        with self._client as client, suppress(Gone):
            for n in range(1_000_000):
                jids = [f"{self._prefix}-{n}-{i}" for i in range(10)]
                for jid in jids:
                    client.ask("PUSH", job(jid))
                for jid in jids:
                    try:
                        client.read()
                    except Refused as refused:
                        self.bye = str(refused).encode()
                        return
                    self.acknowledged.append(jid)
                self.begun.set()


def test_under_load_nothing_acknowledged_is_lost(server: Server) -> None:
    pushers = [Pusher(server, f"pusher-{n}") for n in range(4)]
    for pusher in pushers:
        pusher.start()
    for pusher in pushers:
        assert pusher.begun.wait(PATIENCE_S)
    with Stalls() as shutdown:
        assert server.stop() == 0
    assert shutdown.elapsed < SHUTDOWN_S
    for pusher in pushers:
        pusher.join(PATIENCE_S)
    there = jobs(server.data)
    for pusher in pushers:
        assert pusher.bye == b"ERR shutdown in progress"
        assert set(pusher.acknowledged) <= there


def test_a_blocked_fetch_receives_its_empty_reply_and_then_the_shutdown_error(server: Server) -> None:
    with server.client(wid="worker-1") as client, server.client() as other:
        client.ask("FETCH default")
        other.ask("INFO")
        other.read()  # the fetch was sent first, so it is blocked by now
        assert server.stop() == 0
        assert client.read_end() == b"$-1\r\n" + BYE
        assert other.read_end() == BYE


def test_every_command_that_was_read_is_answered(server: Server) -> None:
    """Commands pipelined after a blocked fetch were read, so they are executed."""
    with server.client() as client:
        client.send(b'FETCH other\r\nPUSH {"jid":"job-0001","jobtype":"t","args":[]}\r\nFETCH default\r\n')
        client.send(b'PUSH {"jid":"job-0002","jobtype":"t","args":[]}\r\n')
        with server.client() as other:
            assert other.sizes()["enqueued"] == 0
        assert server.stop() == 0
        output = client.read_end()
    assert output.startswith(b"$-1\r\n+OK\r\n$")
    assert output.endswith(b"}\r\n+OK\r\n" + BYE)
    assert jobs(server.data) == {"job-0001", "job-0002"}


def test_new_connections_are_not_accepted(server: Server) -> None:
    client = server.client()
    with client:
        assert server.stop() == 0
    with pytest.raises(Gone):
        Client(server.address)


@pytest.mark.parametrize(
    "signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)]
)
def test_other_signals_and_a_second_signal_shut_down_safely(server: Server, signals: tuple[int, ...]) -> None:
    pusher = Pusher(server, "pusher")
    pusher.start()
    assert pusher.begun.wait(PATIENCE_S)
    with Stalls() as shutdown:
        for signum in signals:
            server.signal(signum)
        assert server.wait() == 0
    assert shutdown.elapsed < SHUTDOWN_S
    pusher.join(PATIENCE_S)
    assert set(pusher.acknowledged) <= jobs(server.data)


def test_a_client_that_does_not_read_does_not_delay_the_shutdown(server: Server) -> None:
    with server.client() as client:
        client.socket.settimeout(1.0)
        with suppress(Gone, TimeoutError):
            client.send(b"INFO\r\n" * 200_000)
        with Stalls() as shutdown:
            assert server.stop() == 0
        assert shutdown.elapsed < 5 * SHUTDOWN_S  # without the limit, the server would wait for the client for ever


def test_a_long_request_is_executed_completely_or_not_at_all(server: Server) -> None:
    with server.client() as client:
        many = [job(f"job-{n:06d}", at="2999-01-01T00:00:00Z") for n in range(5_000)]
        assert client.push_many(many) == {}
        client.ask("MUTATE", {"cmd": "requeue", "target": "scheduled"})
        assert server.stop() == 0
        output = client.read_end()
    assert output in (b"+OK\r\n" + BYE, BYE), "executed and answered, or not read in time"
    server.start()
    with server.client() as client:
        sizes = client.sizes()
    assert (sizes["enqueued"], sizes["scheduled"]) == ((5_000, 0) if output.startswith(b"+OK") else (0, 5_000))
