"""A pipeline killed by SIGKILL, in the middle of a batch or of a refresh, by hand or streaming, and started again."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.run import run
from crossdock.pipeline.works import Works
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture

pytestmark = [pytest.mark.slow, pytest.mark.fault]

#: Ledger 1, facts 2 to 6, tables 7 to 14; and the tables' of the first refresh in a stream.
POINTS = [("run", 3, "after"), ("run", 6, "before"), ("stream", 2, "before"), ("stream", 5, "after")]


def test_killed_again_and_again_the_tables_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    load, lake, written = MixedLoad(3), Lake(tmp_path / "lake"), 0
    for verb, n, when in POINTS:
        load.go(60)
        lake.cut(load.events[written:], 100)
        written = len(load.events)
        words = [verb, str(tmp_path / "lake"), str(tmp_path / "tables"), str(n), when]
        child = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.mortal", *words], timeout=240, check=False, capture_output=True
        )
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    lake.close()
    works = Works(spark, tmp_path / "lake", tmp_path / "tables")
    run(works)
    untroubled = Works(spark, tmp_path / "lake", tmp_path / "untroubled")
    run(untroubled)
    assert_same(picture(works), picture(untroubled))
