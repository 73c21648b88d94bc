"""The pipeline and the data source through a real Spark Connect server."""

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset
import pytest

from crossdock.lake.table import Lake
from crossdock.pipeline.catalog import Tables
from crossdock.pipeline.errors import PipelineError
from crossdock.pipeline.lock import writing
from crossdock.pipeline.session import start
from tests.pipeline.clusters import ENV, connect, connect_server
from tests.pipeline.conftest import Grown
from tests.pipeline.hidden import Hidden, assert_the_lake_is_not_seen, assert_the_tables_are_not_seen
from tests.pipeline.pictures import assert_same, picture
from tests.support.command_line import Ended, Operator
from tests.support.patience import PATIENCE_S, PROGRAM_PATIENCE_S, wait_until

pytestmark = pytest.mark.slow

#: A program for a client without Java: everything runs in the server.
READ = """
import sys
from crossdock.pipeline.session import start
from crossdock.pipeline.source.source import register

spark = start(sys.argv[1])
register(spark)
print(spark.read.format("crossdock").option("lake", sys.argv[2]).load().count())
"""


#: A run with small batches, in a client without Java. Prints the events of each batch.
BATCHES = """
import sys
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.lakes import add_lake
from crossdock.pipeline.run import RunSettings, refresh_all, take
from crossdock.pipeline.session import start

url, lake, tables, rows = sys.argv[1:]
context = PipelineContext(start(url), tables)
context.tables.create()
opened, _ = add_lake(context.tables["lakes"], lake)
print(*(made.rows for made in take(context, [opened], rows=int(rows))))
refresh_all(context.tables, RunSettings(), context.progress)
"""


@pytest.fixture(scope="module")
def url(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect(classes, tmp_path_factory.mktemp("connect")) as address:
        yield address


def run(url: str, lake: Path, tables: Path, folder: Path, verb: str = "run") -> Ended:
    """A command on a machine without Java."""
    operator = Operator(folder)
    operator.patience_s = PROGRAM_PATIENCE_S
    operator.environment |= {"JAVA_HOME": str(folder), "PATH": "/usr/bin-without-java"}
    return operator.run("pipeline", verb, "--lake", str(lake), "--tables", str(tables), "--master", url)


def test_the_pipeline_through_connect_makes_the_same_tables(grown: Grown, url: str, tmp_path: Path) -> None:
    done = run(url, grown.lake, tmp_path / "tables", tmp_path)
    assert done.code == 0, done.err
    assert f", 19 tables, {sum(each.rows for each in grown.ran):,} events, " in done.out
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))
    assert run(url, grown.lake, tmp_path / "tables", tmp_path).out == "nothing new\n"
    rebuilt = run(url, grown.lake, tmp_path / "tables", tmp_path, "rebuild")
    assert rebuilt.code == 0, rebuilt.err
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


def test_batches_through_connect_are_bounded(grown: Grown, url: str, tmp_path: Path) -> None:
    files = Lake.open(grown.lake).files()
    total, largest = sum(file.rows for file in files), max(file.rows for file in files)
    rows = total // 3
    done = subprocess.run(
        [sys.executable, "-c", BATCHES, url, str(grown.lake), str(tmp_path / "tables"), str(rows)],
        env=ENV, capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = [int(each) for each in done.stdout.split()]
    assert sum(made) == total and len(made) >= 2
    assert max(made) <= 2 * rows + largest, made
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


def test_a_damaged_file_is_found_by_the_server(grown: Grown, url: str, tmp_path: Path) -> None:
    lake = shutil.copytree(grown.lake, tmp_path / "lake")
    path = max(lake.rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    done = run(url, lake, tmp_path / "tables", tmp_path)
    assert done.code == 1 and f"crossdock: {path} is damaged: " in done.err, done.err


@pytest.mark.parametrize("what", ["tables", "lake"])
def test_a_server_that_does_not_see_the_same_folders_is_reported(
    what: str, grown: Grown, classes: Path, tmp_path: Path
) -> None:
    """Its writes succeed, and its files are somewhere else."""
    folders = Hidden.beside(grown, tmp_path)
    folders.expect_possible()
    with connect(classes, tmp_path, [getattr(folders, what)]) as url:
        lake = folders.lake if what == "lake" else grown.lake
        done = run(url, lake, folders.tables, tmp_path)
    assert_it = assert_the_tables_are_not_seen if what == "tables" else assert_the_lake_is_not_seen
    assert_it(done.code, done.err, Tables(str(folders.tables)))


def test_the_data_source_through_connect(grown: Grown, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, url, str(grown.lake)],
        env=ENV, capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    segments = pyarrow.dataset.dataset(sorted(map(str, grown.lake.rglob("*.parquet"))))
    assert int(done.stdout) == segments.count_rows() > 0


#: A client that holds the lock of the tables while the server runs a query that does not end.
WAITS = """
import sys, time
from pathlib import Path
from crossdock.pipeline.errors import PipelineError, in_words
from crossdock.pipeline.lock import writing
from crossdock.pipeline.session import start

url, folder = sys.argv[1], Path(sys.argv[2])
spark = start(url, timeout_s=4)

def wait(batches):
    (folder / "running").touch()
    time.sleep(600)
    yield from batches

try:
    with in_words("Spark failed"), writing(str(folder), 0):
        spark.range(1).mapInArrow(wait, "id long").collect()
except PipelineError as error:
    print(error)
"""


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_server_that_does_not_answer_is_given_up(how: signal.Signals, classes: Path, tmp_path: Path) -> None:
    with (
        connect_server(classes, tmp_path) as server,
        subprocess.Popen(
            [sys.executable, "-W", "default", "-c", WAITS, server.url, str(tmp_path)],
            env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as client,
    ):  # fmt: skip
        wait_until(lambda: (tmp_path / "running").exists() or client.poll() is not None, "the query")
        server.process.send_signal(how)
        begun = time.monotonic()
        out, err = client.communicate(timeout=PROGRAM_PATIENCE_S)
        took = time.monotonic() - begun
        server.process.send_signal(signal.SIGCONT)
    assert out == (
        f"the Connect server at {server.url} has not answered for 4 s: start it again, or allow more time with "
        "--timeout, then run this command again (no data is lost)\n"
    )
    assert err == ""
    assert 3 < took < PATIENCE_S, "pyspark's own client repeats a call for ten minutes"
    with writing(str(tmp_path), 0):
        pass  # the lock is free


def test_a_port_that_never_answers_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(
            PipelineError, match=f"the Connect server at {url} has not answered for 1 s: start it again"
        ):
            start(url, timeout_s=1)
