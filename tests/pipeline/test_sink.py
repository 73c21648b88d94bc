"""Spark writes jobs to a real server: each row once, whichever process is killed."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from crossdock.client.admin import AdminClient
from crossdock.client.bulk import Loader, LoadProgress, Where
from crossdock.pipeline.source.options import writing
from crossdock.pipeline.source.sink import Sink
from crossdock.pipeline.source.source import register
from tests.pipeline.dying import BATCH, DyingSource, orders
from tests.support.patience import PROGRAM_PATIENCE_S, wait_until
from tests.support.server import Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def speaking(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("sink"), protocols=("redis", "faktory")) as running:
        yield running


def told(server: Server, run: str) -> LoadProgress:
    with Loader(Where("127.0.0.1", server.ports["redis"]), run) as loader:
        return loader.loaded()


def jobs(server: Server, queue: str) -> list[str]:
    with AdminClient(server.data) as client:
        return [row["jid"] for row in client.rows("jobs", queue=queue)]


def at_rest(spark: SparkSession, server: Server) -> None:
    """Wait for the end of all tasks and connections. Spark may have started the next task before it noticed the killed
    one, and the server may not have read all requests yet."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    wait_until(lambda: not sum(each.numRunningTasks() for each in tracker.getExecutorInfos()), "the end of all tasks")
    with AdminClient(server.data) as client:
        wait_until(lambda: client.ask("status")["status"]["connections"] == 1, "the end of what they sent")


def write(frame: DataFrame, server: Server, **options: Any) -> None:
    options = {"port": server.ports["redis"], "chunk": 100} | options
    frame.write.format("crossdock").options(**options).mode("append").save()


def test_a_frame_becomes_jobs(speaking: SparkSession, server: Server) -> None:
    write(orders(speaking, 1_000), server, key="order", queue="frame", run="frame")
    assert told(server, "frame") == LoadProgress("closed", 0, 0, 1_000, 0)
    found = jobs(server, "frame")
    assert (len(found), len(set(found))) == (1_000, 1_000)
    with pytest.raises(PySparkException, match="run frame is already closed"):
        write(orders(speaking, 10), server, key="order", queue="frame", run="frame")
    write(orders(speaking, 10), server, key="order", queue="frame", run="frame", closed="skip")
    assert len(jobs(server, "frame")) == 1_000


def test_a_thousand_jobs_of_twenty_kilobytes(server: Server) -> None:
    schema = StructType([StructField(name, StringType()) for name in ("jid", "args")])
    options = {"port": str(server.ports["redis"]), "kind": "k", "queue": "large", "run": "large"}
    columns = {"jid": [f"large-{n}" for n in range(1_000)], "args": [f'["{"x" * 20_000}"]'] * 1_000}
    sink = Sink(schema, writing(options))
    sent = sink.write(iter([pa.RecordBatch.from_pydict(columns)]))
    sink.commit([sent])
    assert sent.rows == 1_000
    assert told(server, "large") == LoadProgress("closed", 0, 0, 1_000, 0)


@pytest.mark.parametrize(
    ("options", "mode", "why"),
    [
        ({}, "append", "add a column jid"),
        ({"key": "order"}, "append", "option key needs option run"),
        ({"key": "order"}, "overwrite", "jobs are added, never overwritten"),
        ({"key": "order", "run": "absent", "port": 1}, "append", r"no Redis server at 127\.0\.0\.1:1"),
    ],
)
def test_a_frame_that_cannot_be_written_is_refused_before_a_task_starts(
    speaking: SparkSession, server: Server, options: dict[str, Any], mode: str, why: str
) -> None:
    options = {"port": server.ports["redis"]} | options
    with pytest.raises(PySparkException, match=why):
        orders(speaking, 10).write.format("crossdock").options(**options).mode(mode).save()


def test_without_a_run_a_program_that_runs_again_adds_no_job_twice(speaking: SparkSession, server: Server) -> None:
    def again(first: int, last: int) -> list[str]:
        frame = speaking.range(first, last).selectExpr("concat('again-', id) as jid", "'k' as kind")
        write(frame, server, queue="again")
        return sorted(jobs(server, "again"))

    names = [f"again-{n}" for n in range(5)]
    assert again(0, 3) == again(0, 3) == names[:3]
    with server.client() as worker:
        done = worker.fetch("again")
        assert done is not None
        worker.ack(done["jid"])
    names.remove(done["jid"])
    assert again(0, 5) == names, "also if the job no longer exists"


def test_the_error_for_a_refused_job_names_the_job(speaking: SparkSession, server: Server) -> None:
    frame = speaking.createDataFrame([("j", "k", "[1")], "jid string, kind string, args string")
    with pytest.raises(PySparkException, match="job 'j': args must be a JSON text"):
        write(frame, server, run="refused")


@pytest.mark.fault
def test_a_killed_task_loses_and_duplicates_no_job(speaking: SparkSession, server: Server, tmp_path: Path) -> None:
    speaking.dataSource.register(DyingSource)
    rows = "spark.sql.execution.arrow.maxRecordsPerBatch"
    speaking.conf.set(rows, str(BATCH))
    options: dict[str, Any] = {"key": "order", "queue": "killed", "run": "killed", "chunk": 50}
    options["port"] = server.ports["redis"]
    dying = orders(speaking, 3_000).write.format("dying").options(**options).mode("append")
    try:
        with pytest.raises((PySparkException, Py4JJavaError), match="crashed"):
            dying.options(marker=str(tmp_path / "marker"), whom="worker").save()
        at_rest(speaking, server)
        before = told(server, "killed")
        assert before.state == "open"
        assert 0 < before.total_new < 3_000
        dying.save()
    finally:
        speaking.conf.unset(rows)
    after = told(server, "killed")
    assert (after.state, after.total_new, after.total_known) == ("closed", 3_000, before.total_new)
    found = jobs(server, "killed")
    assert (len(found), len(set(found))) == (3_000, 3_000)


@pytest.mark.fault
def test_a_killed_executor_loses_and_duplicates_no_job(server: Server, classes: Path, tmp_path: Path) -> None:
    words = (str(server.ports["redis"]), "3000", str(tmp_path / "marker"), str(classes))
    program = [sys.executable, "-m", "tests.pipeline.dying", *words]
    done = subprocess.run(program, check=False, timeout=PROGRAM_PATIENCE_S, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5_000:]
    assert (tmp_path / "marker").exists()
    after = told(server, "cluster")
    assert (after.state, after.total_new) == ("closed", 3_000)
    assert after.total_known > 0, "the jobs of the killed executor were sent again"
    found = jobs(server, "cluster")
    assert (len(found), len(set(found))) == (3_000, 3_000)


@pytest.mark.parametrize("options", [{}, {"run": "named"}])
def test_a_stream_of_frames(speaking: SparkSession, server: Server, tmp_path: Path, options: dict[str, str]) -> None:
    queue = f"stream{len(options)}"
    a, b, c = (f"{each}{len(options)}" for each in "abc")

    def run(checkpoint: str = "checkpoint") -> None:
        stream = speaking.readStream.schema("jid string, kind string").json(str(tmp_path / "in"))
        query = (
            stream.writeStream.format("crossdock")
            .options(port=server.ports["redis"], queue=queue, checkpointLocation=str(tmp_path / checkpoint), **options)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def bring(name: str, *jids: str) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text("".join(f'{{"jid":"{jid}","kind":"k"}}\n' for jid in jids), "utf-8")

    bring("1.json", a, b)
    run()
    assert jobs(server, queue) == [a, b]
    # The driver died after the server accepted the batch and before Spark recorded it, so it is sent again.
    for note in (tmp_path / "checkpoint" / "commits").glob("*0*"):
        note.unlink()
    run()
    assert jobs(server, queue) == [a, b]
    bring("2.json", a, c)
    run()
    assert jobs(server, queue) == ([a, b, a, c] if options else [a, b, c])
    # With a new checkpoint batch 0 has all rows of the source again, and none may be lost.
    bring("3.json", f"new{queue}")
    run("another")
    found = jobs(server, queue)
    assert found.count(f"new{queue}") == 1
    assert sorted({*found}) == sorted({a, b, c, f"new{queue}"})
    assert found.count(a) == (3 if options else 1)
