"""Many waiters and one job, many due jobs and one waiter (RELIABILITY T24)."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.faktory_client import Client, job
from tests.support.patience import wait_until
from tests.support.server import Server
from tests.support.stalls import Stalls

pytestmark = [pytest.mark.fault, pytest.mark.alone]

HERD = 2_000
DUE = 20_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "data") as server:
        yield server


def processor_s(server: Server) -> float:
    """Processor time the server has used so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_a_herd_of_waiters_is_served_one_job_each_in_order(server: Server) -> None:
    """That each push asks one waiter is counted in tests/unit/server/test_waiters.py. Here the cost of a push
    shows it."""
    clients: list[Client] = []
    try:
        clients.extend(server.client() for _ in range(HERD))
        with server.client() as pusher:
            for client in clients:
                client.ask("FETCH herd")
            pusher.info()
            before = processor_s(server)
            for n in range(200):
                pusher.push(f"job-{n:05d}", "herd")
            used = processor_s(server) - before
            for n in range(200):
                found = clients[n].fetched()
                if found is None:  # its two seconds were over before its turn came
                    continue
                assert found["queue"] == "herd"
            assert used < 1.0, "a push must not wake the herd: 200 times 2,000 waiters would take far longer"
    finally:
        for client in clients:
            client.close()


def schedule(client: Client) -> None:
    """All for one moment. If it comes before all of them are there, for a later one."""
    for ahead in (4, 16, 64):
        at = (datetime.now(UTC) + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")
        for first in range(0, DUE, 1_000):
            client.push_many([job(f"due-{n:06d}", "due", at=at) for n in range(first, first + 1_000)])
        if client.sizes()["scheduled"] == DUE:
            return
        client.call("FLUSH")
    raise AssertionError(f"{DUE} pushes took longer than a minute")


def test_a_flood_of_due_jobs_does_not_keep_pushes_waiting(server: Server) -> None:
    with server.client() as client, server.client() as other:
        schedule(client)
        ended = threading.Event()
        waits: list[float] = []

        def push() -> None:
            while not ended.is_set():
                began = time.monotonic()
                other.push(f"push-{len(waits):06d}", "push")
                waits.append(time.monotonic() - began)

        pusher = threading.Thread(target=push, daemon=True)
        with Stalls() as stalls:
            pusher.start()
            wait_until(lambda: not client.sizes()["scheduled"], "all are due")
            ended.set()
            pusher.join()
        assert client.info()["faktory"]["queues"]["due"] == DUE
        assert max(waits) < 0.5 + stalls.lost, "the goal is 0.1 s; a busy machine gets some more"
