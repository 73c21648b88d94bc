"""The Spark data source. Call `register(spark)`, then read and write with `format("crossdock")`.

Every worker must be able to import this package: see docs/how-to/spark.md.
"""
