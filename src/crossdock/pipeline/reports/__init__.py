"""The reports of `crossdock report`, computed from the tables with deltalake and pyarrow, without Spark or Java.

Each report is a struct that can be encoded as JSON. The command line renders it (cli/render).
"""
