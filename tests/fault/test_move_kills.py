"""A server that is killed during a mass move: each job is in one of the two queues, and the move continues."""

import threading
from pathlib import Path

import pytest

from crossdock.client.admin import AdminClient
from crossdock.client.errors import ClientError
from tests.support.patience import PATIENCE_S
from tests.support.server import Server

pytestmark = pytest.mark.fault

JOBS = 12_000


def waiting(server: Server) -> dict[str, int]:
    with AdminClient(server.data) as client:
        return {name: client.ask("count", queue=name, states=["ready"])["count"] for name in ("from", "to")}


def test_a_kill_between_slices_leaves_each_job_in_one_queue(tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        with server.client() as client:
            for first in range(0, JOBS, 1_000):
                some = range(first, first + 1_000)
                client.push_many([{"jid": f"job-{n:08d}", "jobtype": "k", "queue": "from", "args": []} for n in some])
        promised = [0]

        def move() -> None:
            try:
                with AdminClient(server.data) as control:
                    for step in control.steps("move", queue="from", to="to"):
                        promised[0] += step["done"]
            except ClientError:
                return  # the server was killed

        mover = threading.Thread(target=move)
        mover.start()
        with AdminClient(server.data) as control:
            while not control.ask("count", queue="to", states=["ready"])["count"]:
                assert mover.is_alive() or promised[0]
        server.kill()
        mover.join(PATIENCE_S)
        server.start()
        found = waiting(server)
        assert sum(found.values()) == JOBS
        assert found["to"] >= promised[0], "acknowledged moves must be on disk"
        with AdminClient(server.data) as control:
            rest = sum(step["done"] for step in control.steps("move", queue="from", to="to"))
        assert (rest, waiting(server)) == (found["from"], {"from": 0, "to": JOBS})
        with server.client(wid="w") as client:
            job = client.fetch("to")
            assert job is not None and job["queue"] == "to"
