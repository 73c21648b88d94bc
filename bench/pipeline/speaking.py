"""Spark speaks Crossdock: rows a second read by Arrow batches, by tuples, and by Spark's own reader; jobs enqueued."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bench.spark_load import answer, run
from crossdock.pipeline.source.history import HISTORY_SCHEMA, batches, segments, tasks
from crossdock.pipeline.source.source import register
from crossdock.pipeline.transforms.events import EVENTS_SCHEMA

_ROUNDS: Final = 3
_JOBS: Final = 1_000_000
_ROOT: Final = Path(__file__).parents[2]


def known_to_workers() -> None:
    """Before the session: its Python workers import this module, which is not installed."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))


class Tuples(DataSource):
    """The same rows, one by one."""

    @classmethod
    def name(cls) -> str:
        return "tuples"

    def schema(self) -> StructType:
        return HISTORY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(self.options["lake"])


class TupleReader(DataSourceReader):
    def __init__(self, lake: str) -> None:
        self._lake = lake

    def partitions(self) -> list[InputPartition]:
        return tasks(segments(Path(self._lake), strict=True))

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        for batch in batches(partition.value):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def reading(spark: SparkSession, lake: Path, rows: int) -> dict[str, float]:
    """Rows a second of each way, all columns."""
    paths = [str(each.path) for each in segments(lake, strict=True)]
    register(spark)
    spark.dataSource.register(Tuples)
    ways: dict[str, Callable[[], DataFrame]] = {
        "native": lambda: spark.read.schema(EVENTS_SCHEMA).parquet(*paths),
        "arrow": lambda: spark.read.format("crossdock").option("lake", str(lake)).load(),
        "tuples": lambda: spark.read.format("tuples").option("lake", str(lake)).load(),
    }
    return {name: max(_pace(way, rows) for _ in range(_ROUNDS)) for name, way in ways.items()}


def _pace(way: Callable[[], DataFrame], rows: int) -> float:
    began = time.perf_counter()
    way().write.format("noop").mode("overwrite").save()
    return rows / (time.perf_counter() - began)


def enqueueing(spark: SparkSession) -> float:
    """Jobs a second, to a server that only answers."""
    frame = spark.range(0, _JOBS, 1, 4).selectExpr("id", "concat('[', id, ',\"two\"]') as args")
    hear, tell = multiprocessing.Pipe()
    toy = multiprocessing.Process(target=answer, args=(tell,), daemon=False)
    toy.start()
    try:
        port = hear.recv()
        return max(run(frame, _JOBS, port, f"toy-{n}") for n in range(_ROUNDS))
    finally:
        toy.terminate()
