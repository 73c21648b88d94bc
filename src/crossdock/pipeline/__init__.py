"""The pipeline: tables that Spark makes of the lake's events, batch by batch. The server needs none of it.

`transforms` are pure functions from DataFrame to DataFrame; the modules beside them do the reading and writing.
"""
