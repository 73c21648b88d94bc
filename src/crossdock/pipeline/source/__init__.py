"""Spark speaks Crossdock: `register(spark)`, then `spark.read.format("crossdock")` and `df.write.format("crossdock")`.

Every worker must be able to import this package: docs/how-to/spark.md says how.
"""
