"""The context of a pipeline command: the Spark session, the tables, and how to report progress."""

from pyspark.sql import SparkSession

from crossdock.pipeline.catalog import Progress, Tables, no_progress


class PipelineContext:
    def __init__(self, spark: SparkSession, tables: str, *, progress: Progress = no_progress) -> None:
        self.spark = spark
        self.tables = Tables(tables)
        self.progress = progress

    @property
    def is_local(self) -> bool:
        """Whether Spark's tasks run in this process's JVM."""
        return str(self.spark.conf.get("spark.master", "")).startswith("local")
