"""Daemons of Spark on loopback: a standalone master with two workers, and a Spark Connect server."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyspark

import crossdock
from tests.pipeline.classes import quick
from tests.support.patience import PROGRAM_PATIENCE_S, wait_until

HOME = Path(pyspark.__file__).parent
SOURCE = Path(crossdock.__file__).parents[1]
ENV = {
    **os.environ,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
    "PYTHONPATH": str(SOURCE),
    "PYSPARK_PYTHON": sys.executable,
}

#: Settings of a driver and its executors: little memory, and no adaptive planning.
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


class Cluster(NamedTuple):
    url: str  #: of the master
    folder: Path  #: logs of the daemons, `one.log` and `two.log` those of the workers; `one` and `two`: of executors
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> dict[int, Path]:
        """The processes of the executors that run now, with their logs."""
        found = {}
        for worker in self.workers:
            for pid in _children(worker.pid):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                if any(word.endswith("CoarseGrainedExecutorBackend") for word in words):
                    found[pid] = Path(os.readlink(f"/proc/{pid}/cwd")) / "stderr"
        return found


def hiding(folders: Sequence[Path]) -> list[str]:
    """The beginning of a command that runs where these folders are other ones, which are empty: as on a machine without
    the shared storage."""
    if not folders:
        return []
    mounts = " && ".join(f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in folders)
    return [*_UNSHARE, "sh", "-c", f'{mounts} && exec "$@"', "sh"]


def can_hide(folder: Path) -> bool:
    """Whether the system permits that."""
    return subprocess.run([*hiding([folder]), "true"], capture_output=True, check=False).returncode == 0


_UNSHARE = ("unshare", "--mount", *(() if os.getuid() == 0 else ("--map-root-user",)))


@contextmanager
def standalone(classes: Path, folder: Path, hidden: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Run a master and two workers with one core each. Executors do not see the files in `hidden`."""
    within = hiding(hidden)
    with ExitStack() as stack:

        def daemon(log: str, up: str, kind: str, *words: str) -> tuple[subprocess.Popen[bytes], str]:
            command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
            if kind.startswith("worker"):
                command = [*within, *command]
            env = {"SPARK_DAEMON_JAVA_OPTS": quick(classes), "SPARK_DAEMON_MEMORY": "256m"}
            return stack.enter_context(_running([*command, *words], folder / log, up, env))

        ports = ("--webui-port", "0")
        up = r"Starting Spark master at (spark://\S+)"
        _, url = daemon("master.log", up, "master.Master", "--port", "0", *ports)
        workers = []
        for name in ("one", "two"):
            words = ("--cores", "1", "--memory", "700m", *ports, "--work-dir", str(folder / name))
            worker, _ = daemon(f"{name}.log", "(Successfully registered with master)", "worker.Worker", *words, url)
            workers.append(worker)
        yield Cluster(url, folder, tuple(workers))


def kill_an_executor(cluster: Cluster, stage: int = 0) -> int:
    """Wait until an executor runs a task of this stage or a later one, and kill it. Returns its process ID.

    It is stopped before it is killed, and continued if the task has ended meanwhile: it dies in the middle of a task.
    """
    killed = []

    def kill() -> bool:
        for pid, log in cluster.executors().items():
            if _busy(log, stage):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(_LOG_S)
                busy = _busy(log, stage)
                os.kill(pid, signal.SIGKILL if busy else signal.SIGCONT)
                if busy:
                    killed.append(pid)
                    return True
        return False

    wait_until(kill, lambda: f"a task of stage {stage}: {_tails(cluster)}", PROGRAM_PATIENCE_S)
    return killed[0]


#: A run that takes 20 ms per attempt, so that an executor can be killed in the middle of it.
_SLOW = """
import json, sys
from crossdock.cli.main import main
from crossdock.pipeline import ingest

attempts = ingest.attempts
ingest.attempts = lambda events: attempts(events).where("java_method('java.lang.Thread', 'sleep', 20L) is not null")
sys.exit(main(json.loads(sys.argv[1])))
"""

#: The stages before verify the lake's files.
_BATCH = 2


def run_that_loses_an_executor(cluster: Cluster, classes: Path, lake: Path, tables: Path) -> int:
    """Run the pipeline, and kill an executor in the middle of a batch. Returns the process ID of the executor."""
    words = ["pipeline", "run", "--lake", str(lake), "--tables", str(tables)]
    words += ["--master", cluster.url, "--cds", "off", *flags(on_cluster(classes))]
    with subprocess.Popen(
        [sys.executable, "-c", _SLOW, json.dumps(words)], env=ENV, stderr=subprocess.PIPE, text=True
    ) as driver:
        dead = kill_an_executor(cluster, _BATCH)
        _, err = driver.communicate(timeout=PROGRAM_PATIENCE_S)
    assert driver.returncode == 0, err
    return dead


#: Time for a worker to copy what its executor printed to the log.
_LOG_S = 0.3

_TASK = re.compile(r"(Running|Finished) task \S+ in stage (\d+)\.\d+ \(TID (\d+)\)")


def _busy(log: Path, stage: int) -> bool:
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    last = {task: what for what, number, task in _TASK.findall(text) if int(number) >= stage}
    return "Running" in last.values()


def _tails(cluster: Cluster) -> str:
    return "; ".join(f"{pid}: {log.read_text('utf-8', 'replace')[-1_000:]}" for pid, log in cluster.executors().items())


def _children(pid: int) -> list[int]:
    """A thread of the JVM starts the process, so the children of all threads are listed."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += [int(child) for child in path.read_text().split()]
    return found


class ConnectServer(NamedTuple):
    url: str
    process: subprocess.Popen[bytes]  #: the JVM


@contextmanager
def connect(classes: Path, folder: Path, hidden: Sequence[Path] = ()) -> Iterator[str]:
    """Run a Spark Connect server as in docs/how-to/pipeline.md, and yield its address. It does not see the files in
    `hidden`."""
    with connect_server(classes, folder, hidden) as server:
        yield server.url


@contextmanager
def connect_server(classes: Path, folder: Path, hidden: Sequence[Path] = ()) -> Iterator[ConnectServer]:
    conf = {
        **SMALL,
        "spark.driver.extraJavaOptions": quick(classes),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    kind = "org.apache.spark.sql.connect.service.SparkConnectServer"
    submit = [str(HOME / "bin" / "spark-submit"), "--master", "local[1]", "--driver-memory", "1g", *flags(conf)]
    up = r"Spark Connect server started at: \S*:(\d+)"
    command = [*hiding(hidden), *submit, "--class", kind, "spark-internal"]
    with _running(command, folder / "connect.log", up, {}) as (process, port):
        yield ConnectServer(f"sc://127.0.0.1:{port}", process)


@contextmanager
def _running(
    command: Sequence[str], log: Path, up: str, env: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run the command. Yields its process, and the text that the pattern finds in its log when it is up."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=ENV | env)
        try:
            yield process, _found_in_log(process, log, up)
        finally:
            process.terminate()
            process.wait(PROGRAM_PATIENCE_S)


def _found_in_log(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    give_up = time.monotonic() + PROGRAM_PATIENCE_S
    while True:
        said = log.read_text("utf-8", "replace")
        found = re.search(pattern, said)
        if found:
            return found[1]
        assert process.poll() is None and time.monotonic() < give_up, said
        time.sleep(0.1)
