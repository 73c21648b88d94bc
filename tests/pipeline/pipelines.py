"""The whole pipeline over one lake, for tests: what `crossdock pipeline` does, in this process's Spark session."""

from pathlib import Path

from pyspark.sql import SparkSession

from crossdock.lake.table import Lake
from crossdock.pipeline.context import PipelineContext
from crossdock.pipeline.ingest import Ingested
from crossdock.pipeline.lakes import add_lake, known_lakes
from crossdock.pipeline.quality import faults_of
from crossdock.pipeline.rebuild import rebuild
from crossdock.pipeline.run import Ran, RunSettings, refresh_all, run


class Pipeline:
    def __init__(self, spark: SparkSession, lake: Path, tables: Path, settings: RunSettings | None = None) -> None:
        self.lake = lake
        self.folder = tables
        self.settings = settings or RunSettings()
        self.context = PipelineContext(spark, str(tables))
        self.tables = self.context.tables

    def lakes(self) -> list[Lake]:
        """Record the lake, and open all that are recorded."""
        self.tables.create()
        add_lake(self.tables["lakes"], str(self.lake))
        return [Lake.open(each.location) for each in known_lakes(self.tables["lakes"])]

    def run(self) -> Ran:
        lakes = self.lakes()
        ran = run(self.context, lakes, self.settings)
        assert faults_of(self.tables, lakes) == []
        return ran

    def rebuild(self) -> Ingested:
        lakes = self.lakes()
        made = rebuild(self.context, lakes)
        refresh_all(self.tables, self.settings, self.context.progress)
        assert faults_of(self.tables, lakes) == []
        return made
