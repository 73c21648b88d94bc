"""The pipeline: Spark jobs that turn the lake's events into tables, batch by batch. The server does not need it.

`transforms` are pure functions from DataFrame to DataFrame; the other modules read and write.
"""
