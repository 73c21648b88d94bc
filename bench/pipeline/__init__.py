"""Benchmark of the pipeline: Spark on a generated lake, and DuckDB on the same files."""
