"""Makes `format("crossdock")` known to every Spark session: Spark looks for it in packages named `pyspark_…`."""

from crossdock.pipeline.source.source import CrossdockSource as DefaultSource

__all__ = ["DefaultSource"]
