"""The data source `format("crossdock")`.

Spark starts processes that only ask for the schema, so readers and writers are imported where they are used.
"""

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import StructType

from crossdock.pipeline.source.files import FILES_SCHEMA, Files
from crossdock.pipeline.source.options import BadOption, reading, writing

FORMAT: Final = "crossdock"

#: Off by default in Spark, and a source that accepts filters fails without it.
PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(spark: SparkSession) -> None:
    """Register `format("crossdock")` in this session."""
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(CrossdockSource)


class CrossdockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        what = reading(self.options).what
        if what == "files":
            return FILES_SCHEMA
        if what == "jobs":
            from crossdock.pipeline.source.live import JOBS_SCHEMA

            return JOBS_SCHEMA
        if what == "table":
            from crossdock.pipeline.source.table import schema_of

            return schema_of(reading(self.options))
        from crossdock.pipeline.source.history import HISTORY_SCHEMA

        return HISTORY_SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        options = reading(self.options)
        if options.what == "files":
            raise BadOption("option what = 'files' is for streams; to read events, leave it out")
        if options.what == "jobs":
            from crossdock.pipeline.source.live import Live

            return Live(options)
        if options.what == "table":
            from crossdock.pipeline.source.table import TableRows

            return TableRows(options, schema)
        from crossdock.pipeline.source.history import History

        return History(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        options = reading(self.options)
        if options.what == "table":
            raise BadOption("tables cannot be streamed; to stream history, leave out option what and set option lake")
        if options.what == "jobs":
            raise BadOption(
                "live jobs cannot be streamed; to stream history, leave out option what and set option lake"
            )
        if options.what == "files":
            return super().streamReader(schema)  # raises, and Spark calls simpleStreamReader
        from crossdock.pipeline.source.stream import Events

        return Events(options)

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        return Files(reading(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise BadOption('jobs are added, never overwritten; use .mode("append")')
        from crossdock.pipeline.source.sink import Sink

        return Sink(schema, writing(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        if overwrite:
            raise BadOption('jobs are added, never overwritten; use .outputMode("append")')
        from crossdock.pipeline.source.sink import StreamSink

        return StreamSink(schema, writing(self.options))
