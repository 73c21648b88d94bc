"""Workers, their processes and the server are killed at random under load; then every job is accounted for.

Each job writes a line when it starts and when it ends. A job may run again after a kill, but none is lost, and only as
many run again as the kills explain.
"""

import os
import signal
from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from crossdock.client.client import Client
from crossdock.client.jobs import NewJob
from tests.support.patience import IDLE_PATIENCE_S, wait_until
from tests.support.scale import tries
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.fault, pytest.mark.clients, pytest.mark.slow]

JOBS = tries(3_000, 50_000)
KILLS = tries(12, 200)


def test_every_job_is_accounted_for(tmp_path: Path) -> None:
    random = Random(20)
    with Server(tmp_path / "data", keeps_ports=True) as server, Client(server.url, patience_s=60) as client:
        options = ("--lease", "2s", "--processes", "2", "--threads", "4", "--max-deaths", "1000")
        workers = [WorkerProcess.on(server, tmp_path / "run", *options, WORKER_NAME=str(each)) for each in range(2)]
        try:
            for worker in workers:
                worker.start(ready=False)
            for first in range(0, JOBS, JOBS // KILLS):
                numbers = range(first, min(first + JOBS // KILLS, JOBS))
                client.push_many([NewJob(kind="briefly", args=[f"job-{n}"], retries=1_000) for n in numbers])
                kill_something(server, workers, random)
            wait_until(lambda: drained(server), lambda: workers[0].log()[-5_000:], IDLE_PATIENCE_S)
            for worker in workers:
                assert worker.stop() == 0
        finally:
            for worker in workers:
                if worker.process.poll() is None:
                    worker.kill()
    runs = runs_of(workers[0])
    lost = [number for number in range(JOBS) if ("end", f"job-{number}") not in runs]
    assert lost == []
    again = sum(runs["start", f"job-{number}"] - 1 for number in range(JOBS))
    print({"jobs": JOBS, "kills": KILLS, "runs again": again})
    held = 2 * (4 + 250)  # by one worker: slots and prefetched jobs of its processes
    assert again <= KILLS * held
    assert "the supervisor failed" not in workers[0].log()


def kill_something(server: Server, workers: list[WorkerProcess], random: Random) -> None:
    what = random.choice(["server", "worker", "process", "process", "stop"])
    worker = random.choice(workers)
    if what == "server":
        server.restart()
    elif what == "process":
        children = worker.children()
        if children:
            os.kill(random.choice(children), signal.SIGKILL)
    else:
        worker.signal(signal.SIGKILL if what == "worker" else signal.SIGTERM)
        worker.wait()
        worker.start(ready=False)


def drained(server: Server) -> bool:
    """Failed jobs are made ready at once, instead of after their delay."""
    with server.client() as client:
        client.mutate("requeue", "retries")
        return not any(client.sizes().values())


def runs_of(worker: WorkerProcess) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for what, name, *_ in worker.events():
        found[what, name] += 1
    return found
