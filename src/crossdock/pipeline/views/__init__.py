"""The views: tables that are computed from the rollups, for the dates that a batch changed.

Each view is a query of deltalake's engine (DataFusion). It needs no Spark, so reports can use the same queries.
"""
