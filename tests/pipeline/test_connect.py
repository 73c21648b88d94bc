"""The pipeline, a replay and the format through a real server of Spark Connect."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset
import pytest

from tests.pipeline.clusters import ENV, connect
from tests.pipeline.conftest import Grown
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.replays import replays
from tests.support.command_line import Operator
from tests.support.patience import PROGRAM_PATIENCE_S

pytestmark = pytest.mark.slow

#: What somebody types who has no Java: all of it runs in the server.
READ = """
import sys
from crossdock.pipeline.session import start
from crossdock.pipeline.source.source import register

spark = start(sys.argv[1])
register(spark)
print(spark.read.format("crossdock").option("lake", sys.argv[2]).load().count())
"""


@pytest.fixture(scope="module")
def url(classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect(classes, tmp_path_factory.mktemp("connect")) as address:
        yield address


def test_the_pipeline_by_connect_makes_the_same_tables(grown: Grown, url: str, tmp_path: Path) -> None:
    operator = Operator(tmp_path)
    operator.patience_s = PROGRAM_PATIENCE_S
    operator.environment |= {"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin-without-java"}
    folders = ("--lake", str(grown.lake), "--tables", str(tmp_path / "tables"))
    done = operator.run("pipeline", "run", *folders, "--master", url)
    assert done.code == 0, done.err
    assert_same(picture(tmp_path / "tables"), picture(grown.tables))


def test_a_replay_by_connect(grown: Grown, url: str, tmp_path: Path) -> None:
    replays(grown.lake, tmp_path, url, {})


def test_the_format_by_connect(grown: Grown, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, url, str(grown.lake)],
        env=ENV, capture_output=True, text=True, check=False, timeout=PROGRAM_PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    segments = pyarrow.dataset.dataset(sorted(map(str, grown.lake.rglob("*.parquet"))))
    assert int(done.stdout) == segments.count_rows() > 0
