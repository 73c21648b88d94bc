"""The whole pipeline on a real standalone cluster: a master and two workers on loopback, and spark-submit."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

import crossdock
from tests.pipeline.classes import quick
from tests.pipeline.conftest import Grown
from tests.pipeline.pictures import assert_same, picture

pytestmark = pytest.mark.slow

HOME = Path(pyspark.__file__).parent
SOURCE = Path(crossdock.__file__).parents[1]
ENV = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1", "PYTHONPATH": str(SOURCE)}


@contextmanager
def daemon(classes: Path, log: Path, pattern: str, kind: str, *words: str) -> Iterator[str]:
    """What it told by that pattern when it was up."""
    env = {**ENV, "SPARK_DAEMON_JAVA_OPTS": quick(classes), "SPARK_DAEMON_MEMORY": "256m"}
    with log.open("wb") as out:
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *words]
        process = subprocess.Popen(command, stdout=out, stderr=out, env=env)
        try:
            yield _told(process, log, pattern)
        finally:
            process.terminate()
            process.wait(60)


def _told(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    give_up = time.monotonic() + 120
    while True:
        said = log.read_text("utf-8", "replace")
        found = re.search(pattern, said)
        if found:
            return found[1]
        assert process.poll() is None and time.monotonic() < give_up, said
        time.sleep(0.1)


@pytest.fixture
def master(classes: Path, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        words: tuple[str, ...] = ("--port", "0", "--webui-port", "0")
        up = r"Starting Spark master at (spark://\S+)"
        url = stack.enter_context(daemon(classes, tmp_path / "master.log", up, "master.Master", *words))
        for name in ("one", "two"):
            words = ("--cores", "1", "--memory", "700m", "--webui-port", "0", "--work-dir", str(tmp_path / name))
            up = "(Successfully registered with master)"
            stack.enter_context(daemon(classes, tmp_path / f"{name}.log", up, "worker.Worker", *words, url))
        yield url


def test_the_whole_pipeline_on_a_master_and_two_workers(
    grown: Grown, classes: Path, master: str, tmp_path: Path
) -> None:
    conf = {
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": quick(classes),
        "spark.executor.extraJavaOptions": quick(classes),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.ui.enabled": "false",
    }
    submit = [str(HOME / "bin" / "spark-submit"), "--master", master]
    for key, value in conf.items():
        submit += ["--conf", f"{key}={value}"]
    folders = ["--lake", str(grown.lake), "--tables", str(tmp_path / "tables")]
    program = str(SOURCE / "crossdock" / "__main__.py")
    done = subprocess.run(
        [*submit, program, "pipeline", "run", *folders],
        env={**ENV, "PYSPARK_PYTHON": sys.executable},
        timeout=400,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "took in" in done.stdout
    for name in ("one", "two"):
        assert "Asked to launch executor" in (tmp_path / f"{name}.log").read_text(), f"worker {name} had a part in it"
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))
