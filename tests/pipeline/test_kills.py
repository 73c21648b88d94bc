"""A pipeline killed by SIGKILL, in the middle of a batch or of a refresh, by hand or streaming, and started again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.run import run
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture
from tests.support.patience import PROGRAM_PATIENCE_S

pytestmark = [pytest.mark.slow, pytest.mark.fault]

#: In the middle of the facts (ledger 1, facts 2 to 6), and of the tables: a stream that finishes the two facts that
#: lack, makes a batch of its own, and is in its first refresh. test_increments.py dies at every point.
POINTS = [("run", 4, "after"), ("stream", 10, "before")]


def test_killed_again_and_again_the_tables_are_the_same(spark: SparkSession, classes: Path, tmp_path: Path) -> None:
    load, lake, written = MixedLoad(3), Lake(tmp_path / "lake"), 0
    for verb, n, when in POINTS:
        load.go(60)
        lake.cut(load.events[written:], 100)
        written = len(load.events)
        words = [verb, str(tmp_path / "lake"), str(tmp_path / "tables"), str(n), when, str(classes)]
        child = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.mortal", *words],
            timeout=PROGRAM_PATIENCE_S,
            check=False,
            capture_output=True,
        )
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    lake.close()
    works = PipelineContext(spark, tmp_path / "lake", tmp_path / "tables")
    run(works)
    untroubled = PipelineContext(spark, tmp_path / "lake", tmp_path / "untroubled")
    run(untroubled)
    assert_same(picture(works.tables_folder), picture(untroubled.tables_folder))
