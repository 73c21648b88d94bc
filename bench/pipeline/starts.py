"""What a session costs before its first answer: as Spark is, with the archive of classes, and of a warm Connect server.

python -m bench.pipeline.starts plain|ours|connect [FILE or URL]      one start, for `measure`
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from bench.pipeline.spend import spending
from crossdock.pipeline.session import start

_ROUNDS: Final = 2
_MASTER: Final = "local[2]"
_UP: Final = re.compile(r"Spark Connect server started at: .*:(\d+)")


def with_classes() -> float:
    """Processor time of a session and its first query with the archive, of a plain one's."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "classes.jsa"
        _start("ours", str(archive))
        give_up = time.monotonic() + 120
        while not archive.exists() and time.monotonic() < give_up:  # it is written when Java has ended
            time.sleep(0.5)
        plain, ours = (min(_start(*words) for _ in range(_ROUNDS)) for words in (("plain",), ("ours", str(archive))))
    return ours / plain


def of_connect() -> float | None:
    """Seconds from the start of a client to its first answer; None: pyspark[connect] is not installed."""
    if find_spec("grpc") is None or find_spec("grpc_status") is None:
        return None
    with _server() as url:
        return min(_start("connect", url) for _ in range(_ROUNDS + 1))


def _start(*words: str) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "bench.pipeline.starts", *words], check=True, capture_output=True, text=True, timeout=300
    )
    return float(done.stdout.split()[-1])


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


def _all(log: object) -> str:
    log.seek(0)  # type: ignore[attr-defined]
    return str(log.read())  # type: ignore[attr-defined]


def _one(how: str, *words: str) -> None:
    if how == "connect":
        start(words[0]).range(1).collect()
        print(_age())
        return
    with spending() as spent:
        if how == "plain":
            spark = SparkSession.builder.master(_MASTER).config("spark.driver.host", "127.0.0.1").getOrCreate()
        else:
            spark = start(_MASTER, cds=Path(words[0]))
        spark.range(1_000).selectExpr("id % 7 as k").groupBy("k").count().collect()
    print(spent.cpu)
    spark.stop()


def _age() -> float:
    """Seconds since this process was started."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    _one(*sys.argv[1:])
