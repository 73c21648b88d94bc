"""One Spark session for all tests of the pipeline: small, with one of everything."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.session import start
from crossdock.pipeline.works import Works

#: The JVM's first compiler only, the plainest collector, and no planning of what is small anyhow.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start("local[1]", SMALL)
    yield session
    session.stop()


@pytest.fixture
def works(spark: SparkSession, tmp_path: Path) -> Works:
    return Works(spark, tmp_path / "lake", tmp_path / "tables")
