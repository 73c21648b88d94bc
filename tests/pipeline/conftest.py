"""One Spark session for all tests of the pipeline: small, with one of everything."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.run import Ran, run
from crossdock.pipeline.session import start
from crossdock.pipeline.works import Works
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad

#: The JVM's first compiler only, the plainest collector, and no planning of what is small anyhow.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # to compile a plan costs more than to run it once
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = start("local[1]", SMALL)
    yield session
    session.stop()


class Grown(NamedTuple):
    works: Works
    load: MixedLoad
    ran: list[Ran]


@pytest.fixture(scope="session")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    """Tables that grew by two increments under a mixed load. Tests leave their rows as they are."""
    folder = tmp_path_factory.mktemp("grown")
    works, load, lake = Works(spark, folder / "lake", folder / "tables"), MixedLoad(1), Lake(folder / "lake")
    ran, written = [], 0
    for _ in range(2):
        load.go(500)
        lake.cut(load.events[written:], 600)
        written = len(load.events)
        ran.append(run(works))
    yield Grown(works, load, ran)
    lake.close()


@pytest.fixture
def works(spark: SparkSession, tmp_path: Path) -> Works:
    return Works(spark, tmp_path / "lake", tmp_path / "tables")
