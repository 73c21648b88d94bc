"""Load figures of the pipeline: Spark over a made-up lake, and DuckDB over the same files."""
