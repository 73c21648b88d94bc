"""The columns of all tables and what they mean. This package needs no Spark.

Every table is partitioned by `date`. `attempts` and `links` have one row per event. The rollups are grouped by their
key columns and appended by each batch, so a key can have several rows: readers add them up. The views have one row per
key. docs/reference/tables.md is made from these modules.
"""
