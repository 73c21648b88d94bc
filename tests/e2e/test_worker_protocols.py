"""The worker runs jobs that were pushed through any protocol."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from crossdock.client.base import connect
from tests.support.command_line import Operator
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.peers import LISTENING, PEERS, reach
from tests.support.resqu_peer import ViaResqu
from tests.support.server import Server
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("worker")
    config = folder / "crossdock.toml"
    config.write_text('[mapping.static.default]\ndefault = "work"\n')  # the queue of Resqu's jobs
    with Server(folder / "data", {"config": config}, protocols=LISTENING) as running:
        yield running


@pytest.mark.parametrize("way", ["--threads", "--asyncio"])
def test_jobs_of_each_protocol(server: Server, tmp_path: Path, way: str) -> None:
    peers = [reach(server, protocol) for protocol in sorted(PEERS)]
    peers.append(ViaResqu(connect("resqu", "127.0.0.1", server.ports["redis"], "", PATIENCE_S)))
    try:
        for peer in peers:
            for number in range(3):
                peer.push("work", f"payload-{number}")
        with WorkerProcess.on(server, tmp_path, "-q", "work", way, "2") as worker:
            done = worker.wait_for("foreign", times=3 * len(peers))
            assert worker.stop() == 0
    finally:
        for peer in peers:
            peer.close()
    assert Counter(protocol for _, protocol, _ in done) == {peer.protocol: 3 for peer in peers}
    assert "job-failed" not in worker.log()


def test_a_job_that_is_ready_again_at_once_is_tried_until_it_is_failed(server: Server, tmp_path: Path) -> None:
    """qless does not wait before the next try: the job is fetched again before the reply to its failure."""
    with closing(reach(server, "qless")) as peer:
        for _ in range(20):
            peer.push("again", {"wrong": 1}, retry=3)
        with WorkerProcess.on(server, tmp_path, "-q", "again", "--threads", "4") as worker:
            wait_until(lambda: Operator.at(server.data.parent, {}).json("failure", "list")["failures"], "failures")
            wait_until(lambda: peer.look("again") == 0, "the last try")
            assert worker.stop() == 0
    assert "outcome-refused" not in worker.log()
    assert "could not be reported" not in worker.log()
