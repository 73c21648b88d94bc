"""Spark's own daemons on loopback: a standalone master with two workers, a server of Spark Connect."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

import crossdock
from tests.pipeline.classes import quick
from tests.support.patience import PROGRAM_PATIENCE_S

HOME = Path(pyspark.__file__).parent
SOURCE = Path(crossdock.__file__).parents[1]
ENV = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
    "PYTHONPATH": str(SOURCE),
    "PYSPARK_PYTHON": sys.executable,
}

#: Of a driver and its executors: small, and no planning of what is small anyhow.
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
}


def on_cluster(classes: Path) -> dict[str, str]:
    """The settings of a driver that runs beside such a cluster."""
    return SMALL | {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": quick(classes),
        "spark.executor.extraJavaOptions": quick(classes),
    }


def flags(conf: dict[str, str]) -> list[str]:
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


@contextmanager
def standalone(classes: Path, folder: Path) -> Iterator[str]:
    """A master, whose address it is, and two workers; their logs are `one.log` and `two.log`."""
    with ExitStack() as stack:

        def daemon(log: str, up: str, kind: str, *words: str) -> str:
            command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
            env = {"SPARK_DAEMON_JAVA_OPTS": quick(classes), "SPARK_DAEMON_MEMORY": "256m"}
            return stack.enter_context(_running([*command, *words], folder / log, up, env))

        ports = ("--webui-port", "0")
        url = daemon("master.log", r"Starting Spark master at (spark://\S+)", "master.Master", "--port", "0", *ports)
        for name in ("one", "two"):
            words = ("--cores", "1", "--memory", "700m", *ports, "--work-dir", str(folder / name))
            daemon(f"{name}.log", "(Successfully registered with master)", "worker.Worker", *words, url)
        yield url


@contextmanager
def connect(classes: Path, folder: Path) -> Iterator[str]:
    """A server of Spark Connect, as docs/how-to/pipeline.md starts it."""
    conf = {
        **SMALL,
        "spark.driver.extraJavaOptions": quick(classes),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g", *flags(conf)]
    up = r"Spark Connect server started at: \S*:(\d+)"
    with _running([*submit, "--class", kind, "spark-internal"], folder / "connect.log", up, {}) as port:
        yield f"sc://127.0.0.1:{port}"


@contextmanager
def _running(command: Sequence[str], log: Path, up: str, env: dict[str, str]) -> Iterator[str]:
    """What it told by that pattern when it was up."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=ENV | env)
        try:
            yield _told(process, log, up)
        finally:
            process.terminate()
            process.wait(PROGRAM_PATIENCE_S)


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    give_up = time.monotonic() + PROGRAM_PATIENCE_S
    while True:
        said = log.read_text("utf-8", "replace")
        found = re.search(pattern, said)
        if found:
            return found[1]
        assert process.poll() is None and time.monotonic() < give_up, said
        time.sleep(0.1)
