"""A pipeline that is killed by SIGKILL, in a run or a stream, between commits or in a Spark job, and started again."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.pipelines import Pipeline
from tests.support.patience import PROGRAM_PATIENCE_S
from tests.support.scale import LONG

pytestmark = [pytest.mark.slow, pytest.mark.fault]


class Kill(NamedTuple):
    verb: str
    how: str  #: of mortal.py
    n: int


#: The first is killed between the tables of events: commit 1 is the list of lakes, 2 to 8 are of its batch. The second
#: completes the four tables that lack the batch, ingests its own, and is killed in its first refresh. Then the JVM is
#: killed in a job. test_increments.py covers every commit.
POINTS = [Kill("run", "after", 4), Kill("stream", "before", 14), Kill("run", "jvm", 400)]


def random_points(random: Random, many: int) -> Iterator[Kill]:
    for _ in range(many):
        verb, how = random.choice(["run", "stream"]), random.choice(["before", "after", "moment", "jvm"])
        yield Kill(verb, how, random.randrange(1, 22) if how in ("before", "after") else random.randrange(6_000))


def killed(kill: Kill, lake: Path, tables: Path, classes: Path) -> None:
    words = [kill.verb, str(lake), str(tables), kill.how, str(kill.n), str(classes)]
    child = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.mortal", *words],
        timeout=PROGRAM_PATIENCE_S, check=False, capture_output=True, text=True,
    )  # fmt: skip
    # A run may have ended before that commit or moment.
    codes = {-signal.SIGKILL, 1} if kill.how == "jvm" else {-signal.SIGKILL}
    assert child.returncode in (codes if not LONG else {0, *codes}), (kill, child.stderr)
    assert "Traceback" not in child.stderr, (kill, child.stderr)
    if child.returncode == 1:
        assert "crossdock: Spark's Java process has ended (signal 9; the system kills" in child.stderr, child.stderr


def test_the_tables_are_the_same_after_several_kills(spark: SparkSession, classes: Path, tmp_path: Path) -> None:
    """Tables that grew through kills, tables of one run, and rebuilt tables are equal."""
    load, lake, written = MixedLoad(3), Lake(tmp_path / "lake"), 0
    random = Random(5)
    for kill in random_points(random, 50) if LONG else POINTS:
        load.go(random.randrange(10, 60))
        lake.cut(load.events[written:], 100)
        written = len(load.events)
        killed(kill, tmp_path / "lake", tmp_path / "tables", classes)
    lake.close()
    grown = Pipeline(spark, tmp_path / "lake", tmp_path / "tables")
    grown.run()
    clean = Pipeline(spark, tmp_path / "lake", tmp_path / "clean")
    clean.run()
    assert_same(picture(grown.folder), picture(clean.folder))
    grown.rebuild()
    assert_same(picture(grown.folder), picture(clean.folder))
