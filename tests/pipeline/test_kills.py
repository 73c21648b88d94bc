"""A pipeline that is killed by SIGKILL, in a run or a stream, between commits or in a Spark job, and started again."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.kills import Kill, killed, random_points
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pictures import assert_same, picture
from tests.pipeline.pipelines import Pipeline
from tests.support.scale import LONG

pytestmark = [pytest.mark.slow, pytest.mark.fault]


#: The first is killed between the tables of events: commit 1 is the list of lakes, 2 to 8 are of its batch. The second
#: completes the four tables that lack the batch, ingests its own, and is killed in its first refresh. Then the JVM is
#: killed in a job. test_increments.py covers every commit.
POINTS = [Kill("run", "after", 4), Kill("stream", "before", 14), Kill("run", "jvm", 400)]


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
