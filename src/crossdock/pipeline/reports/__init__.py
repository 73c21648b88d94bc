"""What `crossdock report` tells, read from the tables without Spark or Java: deltalake finds files, pyarrow adds up.

Each report is a value that becomes JSON as it is; how it looks is up to the command line (cli/reports).
"""
