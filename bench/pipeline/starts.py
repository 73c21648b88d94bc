"""Measures the start of a session and its first small work: CPU time of all processes, from start to end.

python -m bench.pipeline.starts                                       all ways, as a share of Spark's default
python -m bench.pipeline.starts one default|large|small|connect …     one start, for `measure`
"""

import ctypes
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.table import show
from crossdock.lake.schema import EVENTS
from crossdock.pipeline.environment import spark_path
from crossdock.pipeline.session import start, stop
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA, date_of, slot_of

_ROUNDS: Final = 3
_MASTER: Final = "local[2]"
_UP: Final = re.compile(r"Spark Connect server started at: .*:(\d+)")
_PR_SET_CHILD_SUBREAPER: Final = 36

#: Ways to start, and the words that `one` gets for them. An archive is made before the first measured start.
_WAYS: Final = {
    "Spark's default": ("default",),
    "start(small=False)": ("large",),
    "start(small=True)": ("small",),
    "start(small=True), with an archive": ("small", "archive.jsa"),
}


def measure(rounds: int = _ROUNDS) -> dict[str, float]:
    """CPU seconds of each way, the least of some rounds. The ways take turns, so that all meet the same load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _events(folder / "events.parquet")
        _cpu(folder, "small", "archive.jsa")
        spent: dict[str, list[float]] = {way: [] for way in _WAYS}
        for _ in range(rounds):
            for way, words in _WAYS.items():
                spent[way].append(_cpu(folder, *words))
    return {way: min(each) for way, each in spent.items()}


def with_classes() -> float:
    """CPU time of a small session and its first work with the archive, as a share of default Spark's."""
    spent = measure(2)
    return spent["start(small=True), with an archive"] / spent["Spark's default"]


def of_connect() -> float | None:
    """Seconds from the start of a client to its first result. None: pyspark[connect] is not installed."""
    if find_spec("grpc") is None or find_spec("grpc_status") is None:
        return None
    with _server() as url:
        return min(float(_run("connect", url)) for _ in range(_ROUNDS + 1))


def _cpu(folder: Path, *words: str) -> float:
    """CPU seconds of one start and all processes that it leaves behind: Spark does not wait for its JVM."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = _children()
    _run(*words[:1], str(folder), *words[1:])
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _run(*words: str) -> str:
    command = [sys.executable, "-m", "bench.pipeline.starts", "one", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.split()[-1]


@contextmanager
def _server() -> Iterator[str]:
    home = Path(pyspark.__file__).parent
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    words = ["--master", _MASTER, "--conf", "spark.connect.grpc.binding.port=0", "--class", kind, "spark-internal"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), *words], stdout=log, stderr=log,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
        try:
            give_up = time.monotonic() + 180
            while not (found := _UP.search(_all(log))):
                if process.poll() is not None or time.monotonic() > give_up:
                    raise SystemExit(f"the Connect server did not start: {_all(log)[-2_000:]}")
                time.sleep(0.2)
            yield f"sc://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
            process.wait(60)


def _all(log: Any) -> str:
    log.seek(0)
    return str(log.read())


def _one(how: str, *words: str) -> None:
    if how == "connect":
        start(words[0]).range(1).collect()
        print(_age())
        return
    folder = Path(words[0])
    if how == "default":
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        spark = SparkSession.builder.master(_MASTER).getOrCreate()
    else:
        spark = start(_MASTER, cds=folder / words[1] if words[1:] else None, small=how == "small")
    _work(spark, folder)
    stop(spark)
    print("done")


def _events(path: Path) -> None:
    """Four events."""
    ended = {"flush_epoch": 0, "event": "completed", "outcome": "succeeded", "queue": "q", "kind": "k", "worker": "w"}
    at = time.time()
    rows = [
        {**ended, "seq": n, "at": at + n, "jid": f"j{n}", "number": n, "run_s": 1.5, "wait_s": 0.5, "server": "s"}
        for n in range(4)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), path)


def _work(spark: SparkSession, folder: Path) -> None:
    """What a batch does: write the attempts, and collect three rollups."""
    events = spark.read.schema(EVENTS_SCHEMA).parquet(spark_path(folder / "events.parquet"))
    ended = events.where("outcome is not null").select(
        "seq", "jid", "queue", "run_s", date_of(F.col("at")).alias("date")
    )
    ended.write.mode("overwrite").partitionBy("date").parquet(spark_path(folder / "attempts"))
    hours = _rollup(events, slot_of(F.col("at")), "event", "at")
    days = _rollup(events, date_of(F.col("at")).cast("string"), "kind", "wait_s")
    runs = _rollup(events.where("run_s is not null"), F.floor("run_s"), "worker", "run_s")
    if hours.union(days).union(runs).toArrow().num_rows < 3:
        raise SystemExit("a rollup is empty")


def _rollup(events: DataFrame, slot: Any, what: str, of: str) -> DataFrame:
    rows = events.groupBy(slot.cast("string").alias("slot"), "queue", what)
    return rows.agg(F.count("*").alias("n"), F.sum(of).alias("sum"), F.max(of).alias("max"))


def _age() -> float:
    """Seconds since this process started."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    spent = measure()
    default = spent["Spark's default"]
    rows = [(way, f"{cpu:.1f}", f"{cpu / default:.2f}") for way, cpu in spent.items()]
    show("session and first work on four events", ("way", "CPU s", "share"), rows)


if __name__ == "__main__":
    _one(*sys.argv[2:]) if sys.argv[1:2] == ["one"] else main()
