"""`format("crossdock")`."""

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from crossdock.pipeline.source.history import HISTORY_SCHEMA, History
from crossdock.pipeline.source.live import JOBS_SCHEMA, Live
from crossdock.pipeline.source.options import BadOption, reading, writing
from crossdock.pipeline.source.sink import Sink, StreamSink
from crossdock.pipeline.source.stream import Events

FORMAT: Final = "crossdock"

#: Off in Spark unless asked for, and a source that takes filters fails without it.
_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Make `format("crossdock")` known to this session."""
    spark.conf.set(_PUSHDOWN, "true")
    spark.dataSource.register(CrossdockSource)


class CrossdockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return JOBS_SCHEMA if reading(self.options).what == "jobs" else HISTORY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        options = reading(self.options)
        return Live(options) if options.what == "jobs" else History(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        options = reading(self.options)
        if options.what == "jobs":
            raise BadOption("live jobs are no stream; follow history: leave option what out, and name option lake")
        return Events(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise BadOption('jobs are added, never overwritten; say .mode("append")')
        return Sink(schema, writing(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        if overwrite:
            raise BadOption('jobs are added, never overwritten; say .outputMode("append")')
        return StreamSink(schema, writing(self.options))
