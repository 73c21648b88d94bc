"""The tables against an independent computation: clients of five protocols on a real server keep their own log of what
they did, and plain Python computes the expected figures from it. Nothing of the engine, the lake or the pipeline is
used for them."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final, NamedTuple

import pytest
from pyspark.sql import SparkSession

from crossdock.client.base import connect
from tests.pipeline.pictures import rows
from tests.pipeline.pipelines import Pipeline
from tests.support.command_line import Operator
from tests.support.patience import IDLE_PATIENCE_S, PATIENCE_S, wait_until
from tests.support.peer import Peer
from tests.support.peers import LISTENING, PEERS, reach
from tests.support.resqu_peer import ViaResqu
from tests.support.server import Server

pytestmark = pytest.mark.slow

QUEUES: Final = ("mail", "billing", "reports")
JOBS: Final = 160
#: A client sees a lease begin later, and end earlier or later, than the server does.
SLACK_S: Final = 0.25
#: Resqu's jobs go to the queue of their name.
CONFIG: Final = '[mapping.static.default]\ndefault = "mail"\n[mapping.static.s]\n' + "".join(
    f'{queue} = "{queue}"\n' for queue in QUEUES
)


class Attempt(NamedTuple):
    """A line of the log: one lease that a client had and settled."""

    queue: str
    pushed_with: str
    worked_with: str
    succeeded: bool
    run_s: float

    @property
    def ends_the_job(self) -> bool:
        """Jobs are pushed without retries, but Resqu has no such option."""
        return self.succeeded or self.pushed_with != "resqu"


class Log:
    def __init__(self) -> None:
        self.pushed: Counter[tuple[str, str]] = Counter()  #: by queue and protocol
        self.attempts: list[Attempt] = []
        self.pushed_at: dict[str, float] = {}  #: by the text of the job
        self.total_s: list[float] = []
        self.waiting: Counter[str] = Counter()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    config = tmp_path / "crossdock.toml"
    config.write_text(CONFIG)
    settings = {"config": config, "lake.segment_s": 0.2, "server.name": "shop-1"}
    with Server(tmp_path / "data", settings, protocols=LISTENING) as running:
        yield running


def drive(server: Server, log: Log, random: Random) -> None:
    """Push jobs through every protocol, work them through every other one, and write down what happened."""
    peers: dict[str, Peer] = {name: reach(server, name, f"{name}-worker") for name in PEERS}
    redis = connect("redis", "127.0.0.1", server.ports[PEERS["qless"].listener], "", PATIENCE_S)
    peers["resqu"] = ViaResqu(redis)
    origin: dict[str, tuple[str, str]] = {}
    for number in range(JOBS):
        protocol, queue = random.choice(sorted(peers)), random.choice(QUEUES)
        text = f"job {number}"
        log.pushed_at[text] = time.time()
        peers[protocol].push(queue, text, retry=0)
        origin[text] = (queue, protocol)
        log.pushed[queue, protocol] += 1
        if random.random() < 0.8:
            work(peers, log, random, origin)
    for queue, _ in origin.values():
        log.waiting[queue] += 1
    for attempt in log.attempts:
        log.waiting[attempt.queue] -= attempt.ends_the_job
    for peer in peers.values():
        peer.close()


def work(peers: dict[str, Peer], log: Log, random: Random, origin: dict[str, tuple[str, str]]) -> None:
    worker = random.choice([name for name in sorted(peers) if name != "faktory"])  # its FETCH waits for two seconds
    got = peers[worker].fetch(random.choice(QUEUES))
    if got is None:
        return
    began = time.time()
    time.sleep(random.random() * 0.02)
    queue, protocol = origin[got.text]
    succeeds = worker == "resqu" or random.random() < 0.75  # a Resqu worker does not report failures
    assert (peers[worker].succeed if succeeds else peers[worker].fail)(got.ident)
    ended = time.time()
    log.attempts.append(Attempt(queue, protocol, worker, succeeds, ended - began))
    if succeeds:
        log.total_s.append(ended - log.pushed_at[got.text])


def test_the_tables_agree_with_the_clients_own_log(server: Server, spark: SparkSession, tmp_path: Path) -> None:
    log = Log()
    drive(server, log, Random(7))
    operator = Operator(tmp_path, server_data="data")

    def caught_up() -> bool:
        status = json.loads(operator.run("lake", "status", "--json").out)
        return bool(status["last"]) and not status["lag"]["entries"]

    wait_until(caught_up, "the lake", IDLE_PATIENCE_S)
    pipeline = Pipeline(spark, tmp_path / "data" / "lake", tmp_path / "tables")
    pipeline.run()
    tables = tmp_path / "tables"
    attempts = rows(tables, "attempts")
    assert {row["server"] for row in attempts} == {"shop-1"}
    assert Counter(
        (row["queue"], row["protocol_in"], row["protocol_out"], row["outcome"] == "succeeded") for row in attempts
    ) == Counter(attempt[:4] for attempt in log.attempts)
    assert len({(row["protocol_out"], row["worker"]) for row in attempts if row["worker"]}) >= 3, "workers told apart"
    assert fmean(row["run_s"] for row in attempts) == pytest.approx(
        fmean(attempt.run_s for attempt in log.attempts), abs=SLACK_S
    )
    daily = rows(tables, "daily")
    for queue in QUEUES:
        mine = [row for row in daily if row["queue"] == queue]
        ended = [attempt for attempt in log.attempts if attempt.queue == queue]
        good = sum(attempt.succeeded for attempt in ended)
        sums = {name: sum(row[name] for row in mine) for name in ("pushed", "attempts", "succeeded", "died", "total_n")}
        assert sums == {
            "pushed": sum(n for (of, _), n in log.pushed.items() if of == queue),
            "attempts": len(ended),
            "succeeded": good,
            "died": sum(attempt.ends_the_job for attempt in ended) - good,
            "total_n": good,
        }, queue
        hours = [row for row in rows(tables, "hourly") if row["queue"] == queue]
        assert sum(row["arrived"] for row in hours) == sums["pushed"]
        assert sum(row["departed"] for row in hours) == sum(attempt.ends_the_job for attempt in ended)
    newest = max(row["date"] for row in rows(tables, "depths"))
    depths = {row["queue"]: row["depth"] for row in rows(tables, "depths") if row["date"] == newest and row["depth"]}
    assert depths == dict(+log.waiting)
    totals = [row for row in daily if row["total_n"]]
    mean = sum(row["total_mean"] * row["total_n"] for row in totals) / sum(row["total_n"] for row in totals)
    assert mean == pytest.approx(fmean(log.total_s), abs=SLACK_S)
    assert sum(row["n"] for row in rows(tables, "failures")) == sum(not attempt.succeeded for attempt in log.attempts)
