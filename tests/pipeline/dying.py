"""The real sink, killed by SIGKILL in the middle of its first task, and a program that runs it.

python -m tests.pipeline.dying PORT ROWS MARKER CLASSES     on a small cluster of its own, whose executor is killed
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from crossdock.pipeline.session import start
from crossdock.pipeline.source.options import Writing, writing
from crossdock.pipeline.source.sink import Sent, Sink
from crossdock.pipeline.source.source import CrossdockSource
from tests.pipeline.classes import quick

#: Rows per batch of the sink. It is killed after the third batch.
BATCH = 100


class DyingSink(Sink):
    def __init__(self, schema: StructType, options: Writing, marker: Path, whom: str) -> None:
        super().__init__(schema, options)
        self._marker = marker
        self._whom = whom

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        return super().write(self._until_death(iterator))

    def _until_death(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for count, batch in enumerate(batches):
            if count == 3 and not self._marker.exists():
                self._marker.write_text("killed", "utf-8")
                os.kill(_executor() if self._whom == "executor" else os.getpid(), signal.SIGKILL)
            yield batch


def _executor() -> int:
    """The process ID of the JVM of this worker."""
    pid = os.getpid()
    while b"java" not in Path(f"/proc/{pid}/comm").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
    if b"CoarseGrainedExecutorBackend" not in Path(f"/proc/{pid}/cmdline").read_bytes():
        raise RuntimeError("the driver would be killed")
    return pid


class DyingSource(CrossdockSource):
    @classmethod
    def name(cls) -> str:
        return "dying"

    def writer(self, schema: StructType, overwrite: bool) -> DyingSink:
        own = {"marker", "whom"}
        options = {name: value for name, value in self.options.items() if name not in own}
        return DyingSink(schema, writing(options), Path(self.options["marker"]), self.options["whom"])


def orders(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(0, count, 1, 3).selectExpr("id as order", "'mail' as kind", "named_struct('order', id) as args")


def main() -> None:
    port, rows, marker, classes = sys.argv[1:]
    conf = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH),
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": quick(Path(classes)),
        "spark.executor.extraJavaOptions": quick(Path(classes)),
    }
    spark = start("local-cluster[2,1,512]", conf)
    spark.dataSource.register(DyingSource)
    sink = orders(spark, int(rows)).write.format("dying").mode("append")
    sink.options(port=port, key="order", queue="cluster", run="cluster", chunk=50)
    sink.options(marker=marker, whom="executor").save()
    spark.stop()


if __name__ == "__main__":
    main()
