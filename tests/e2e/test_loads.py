"""Bulk loads into a real server with redis-py, plain sockets and our client, also when the server is killed or full."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis

from crossdock.client.bulk import Later, Loader, LoadProgress, Where
from crossdock.client.errors import NoServer, Refused
from tests.support.patience import PATIENCE_S
from tests.support.server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("loads"), protocols=("redis", "faktory")) as running:
        yield running


def where(server: Server) -> Where:
    return Where("127.0.0.1", server.ports["redis"])


def rows(first: int, count: int) -> bytes:
    return msgspec.msgpack.encode([(f"job-{n}", "loads", "kind", f"[{n}]") for n in range(first, first + count)])


@pytest.mark.clients
@pytest.mark.parametrize("protocol", [2, 3])
def test_redis_py_can_send_a_bulk_load(server: Server, protocol: int) -> None:
    with redis.Redis(port=server.ports["redis"], protocol=protocol, socket_timeout=PATIENCE_S) as client:
        run = f"redis-py-{protocol}"
        jobs = json.dumps([{"jid": f"{run}-job-{n}", "queue": run, "kind": "mail", "args": [n]} for n in range(3)])
        assert client.fcall("crossdock.load", 0, run, jobs) == [b"open", 3, 0, 3, 0]
        assert client.fcall("crossdock.load", 0, run, jobs) == [b"open", 0, 3, 3, 3]
        assert client.fcall("crossdock.loaded", 0, run) == [b"open", 0, 0, 3, 3]
        assert client.fcall("crossdock.close", 0, run) == [b"closed", 0, 0, 3, 3]
        with pytest.raises(redis.ResponseError, match="must be a JSON array"):
            client.fcall("crossdock.load", 0, run, "nonsense")
    with server.client() as worker:
        job = worker.fetch(run)
        assert job is not None
        assert (job["jid"], job["args"], job["retry"]) == (f"{run}-job-0", [0], 25)


def test_a_plain_socket_can_send_a_bulk_load(server: Server) -> None:
    jobs = b'[{"jid":"raw-1","queue":"raw","kind":"k"}]'
    call = b"*5\r\n$5\r\nFCALL\r\n$14\r\ncrossdock.load\r\n$1\r\n0\r\n$3\r\nraw\r\n$%d\r\n%b\r\n" % (len(jobs), jobs)
    with socket.create_connection(("127.0.0.1", server.ports["redis"]), PATIENCE_S) as peer:
        for cut in (1, len(call) // 2):
            peer.sendall(call[:cut])
            peer.sendall(call[cut:])
        wanted = b"*5\r\n$4\r\nopen\r\n:1\r\n:0\r\n:1\r\n:0\r\n*5\r\n$4\r\nopen\r\n:0\r\n:1\r\n:1\r\n:1\r\n"
        got = b""
        while len(got) < len(wanted):
            got += peer.recv(4_096)
        assert got == wanted


def test_our_client_pipelines_and_counts(server: Server) -> None:
    reports: list[LoadProgress] = []
    with Loader(where(server), "ours", tell=reports.append) as loader:
        for first in range(0, 10_000, 1_000):
            loader.put(rows(first, 1_000))
        loader.drain()
        assert loader.loaded()[3:] == (10_000, 0)
        loader.put(rows(9_500, 1_000))
        assert loader.finish() == LoadProgress("closed", 0, 0, 10_500, 500)
        assert loader.ended == ""
        loader.put(rows(20_000, 1))
        loader.drain()
        assert loader.ended == "closed"
    assert sum(each.new for each in reports) == 10_500


def test_a_bad_job_is_reported_with_the_servers_message(server: Server) -> None:
    with Loader(where(server), "bad") as loader:
        loader.put(msgspec.msgpack.encode([("jid", "q", "k", "[")]))
        with pytest.raises(Refused, match="job 'jid': args must be a JSON text"):
            loader.drain()


def test_a_missing_server_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NoServer, match=r"no Redis server at 127\.0\.0\.1:1"):
        Loader(Where("127.0.0.1", 1), "run")


def test_a_bulk_load_needs_the_password(tmp_path: Path) -> None:
    with Server(tmp_path, {"redis.password": "secret"}, protocols=("redis",)) as server:
        with Loader(where(server)._replace(password="secret"), "run") as loader:
            assert loader.loaded().state == "unknown"
        with pytest.raises(Refused, match="WRONGPASS"):
            Loader(where(server)._replace(password="wrong"), "run")
        with Loader(where(server), "run") as loader, pytest.raises(Refused, match="requires a password"):
            loader.loaded()


def test_a_full_server_delays_the_load_until_there_is_room(tmp_path: Path) -> None:
    with Server(tmp_path, {"limits.jobs": 1_000}, protocols=("redis", "faktory")) as server:
        with Loader(where(server), "run", patience_s=0.5) as loader:
            loader.put(rows(0, 1_000))
            loader.put(rows(1_000, 10))
            with pytest.raises(Later, match="1000"):
                loader.drain()
        waited = threading.Event()
        with Loader(where(server), "run", tell=lambda report: waited.set()) as loader:
            loader.put(rows(1_000, 10))
            thread = threading.Thread(target=loader.drain)
            thread.start()
            assert not waited.wait(0.2)
            with server.client() as worker:
                worker.call("FLUSH")
            assert waited.wait(PATIENCE_S)
            thread.join(PATIENCE_S)
            assert loader.loaded()[3:] == (10, 0)


@pytest.mark.fault
def test_a_load_across_a_kill_loses_and_duplicates_no_job(tmp_path: Path) -> None:
    with Server(tmp_path, protocols=("redis", "faktory"), keeps_ports=True) as server:
        killed = 0
        with Loader(where(server), "run") as loader:
            for first in range(0, 60_000, 1_000):
                loader.put(rows(first, 1_000))
                if first % 15_000 == 7_000:
                    server.restart()
                    killed += 1
            report = loader.finish()
        assert killed == 4
        assert report.total_new == 60_000
        with server.client() as worker:
            assert worker.info()["faktory"]["queues"]["loads"] == 60_000
