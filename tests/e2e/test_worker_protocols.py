"""The worker runs jobs that were pushed through any protocol."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.peers import LISTENING, PEERS, reach
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("worker") / "data", protocols=LISTENING) as running:
        yield running


@pytest.mark.parametrize("protocol", sorted(PEERS))
@pytest.mark.parametrize("way", ["--threads", "--asyncio"])
def test_jobs_of_each_protocol(server: Server, tmp_path: Path, protocol: str, way: str) -> None:
    queue = f"queue-{protocol}{way}"
    with closing(reach(server, protocol)) as peer:
        for number in range(3):
            peer.push(queue, f"payload-{number}")
        with WorkerProcess.on(server, tmp_path, "-q", queue, way, "2") as worker:
            assert worker.wait_for("foreign", times=3) == [["foreign", protocol, queue]] * 3
            assert worker.stop() == 0
        assert peer.look(queue) == 0
