"""One Spark session for all tests of the pipeline: small, with one of everything."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.run import Ran, run
from crossdock.pipeline.session import start
from tests.pipeline.classes import QUICK, archive
from tests.pipeline.lakes import Lake
from tests.pipeline.loads import MixedLoad
from tests.support.locks import locked

#: Of the load, before each of the two increments.
ACTS = 300

#: One of everything, and no planning of what is small anyhow; to compile a plan costs more than to run it once.
SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
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
def grown(request: pytest.FixtureRequest, together: Path) -> Grown:
    """Tables that grew by two increments under a mixed load, made once a run. Tests leave them as they are."""
    folder, notes, load = together / "grown", together / "grown.json", MixedLoad(1)
    with locked(together / "grown.lock"):
        if notes.exists():  # the same seed makes the same load
            load.go(2 * ACTS)
            ran = [Ran(*each) for each in json.loads(notes.read_text("utf-8"))]
        else:
            ran = grow(load, PipelineContext(request.getfixturevalue("spark"), folder / "lake", folder / "tables"))
            notes.write_text(json.dumps(ran), "utf-8")
    return Grown(folder / "lake", folder / "tables", load, ran)


def grow(load: MixedLoad, works: PipelineContext) -> list[Ran]:
    lake, ran, written = Lake(works.lake), [], 0
    for _ in range(2):
        load.go(ACTS)
        lake.cut(load.events[written:], 400)
        written = len(load.events)
        ran.append(run(works))
    lake.close()
    return ran


@pytest.fixture
def works(spark: SparkSession, tmp_path: Path) -> PipelineContext:
    return PipelineContext(spark, tmp_path / "lake", tmp_path / "tables")
