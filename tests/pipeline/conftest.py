"""One small Spark session for all tests of the pipeline."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.run import Ran
from crossdock.pipeline.session import start
from tests.pipeline.classes import QUICK, archive
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.pipeline.pipelines import Pipeline
from tests.support.locks import locked

#: Actions of the load before each of the two increments.
ACTS = 300

#: One partition, no adaptive planning and no generated code: compiling a plan costs more than running it once.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start Spark: those that use its session, or the archive of its classes."""
    for item in items:
        if isinstance(item, pytest.Function) and {"spark", "classes"} & set(item.fixturenames):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def together(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that all processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "pipeline-together"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def classes(pytestconfig: pytest.Config, together: Path) -> Path:
    cache = pytestconfig.cache.mkdir("spark") if hasattr(pytestconfig, "cache") and pytestconfig.cache else together
    return archive(cache)


@pytest.fixture(scope="session")
def spark(classes: Path) -> Iterator[SparkSession]:
    session = start("local[1]", SMALL, classes)
    yield session
    session.stop()


class Grown(NamedTuple):
    lake: Path
    tables: Path
    load: MixedLoad
    ran: list[Ran]


@pytest.fixture(scope="session")
def grown(request: pytest.FixtureRequest, together: Path, classes: Path) -> Grown:
    """Tables of two increments under a mixed load, made once per run. Tests do not change them."""
    folder, notes, load = together / "grown", together / "grown.json", MixedLoad(1)
    with locked(together / "grown.lock"):
        if notes.exists():  # the same seed makes the same load
            load.go(2 * ACTS)
            ran = [Ran(*each) for each in json.loads(notes.read_text("utf-8"))]
        else:
            ran = grow(load, Pipeline(request.getfixturevalue("spark"), folder / "lake", folder / "tables"))
            notes.write_text(json.dumps(ran), "utf-8")
    return Grown(folder / "lake", folder / "tables", load, ran)


def grow(load: MixedLoad, pipeline: Pipeline) -> list[Ran]:
    lake, ran, written = Lake(pipeline.lake), [], 0
    for _ in range(2):
        load.go(ACTS)
        lake.cut(load.events[written:], 400)
        written = len(load.events)
        ran.append(pipeline.run())
    lake.close()
    return ran


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path / "lake", tmp_path / "tables")
