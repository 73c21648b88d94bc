"""Buckets of durations: those of qless' statistics, as the engine computes them (engine/records/stats.py), and those
that grow by 4 %, for percentiles."""

from math import log

from pyspark.sql import Column
from pyspark.sql import functions as F

from crossdock.pipeline.transforms.buckets import GAMMA, NOTHING


def fine_bucket(value: Column) -> Column:
    """The bucket of qless' statistics: seconds up to a minute, minutes up to an hour, quarters of an hour up to a day,
    hours up to three days, then days. One bucket is for negative values, and one for values beyond the last day."""
    whole = F.floor(value)
    return (
        F.when(whole < 60, F.greatest(whole, F.lit(-1)))
        .when(whole < 3_600, 59 + F.floor(whole / 60))
        .when(whole < 86_400, 115 + F.floor(whole / 900))
        .when(whole < 259_200, 187 + F.floor(whole / 3_600))
        .otherwise(F.least(256 + F.floor(whole / 86_400), F.lit(1_998)))
        .cast("int")
    )


def log_bucket(value: Column) -> Column:
    return F.when(value > 0, F.ceil(F.log(value) / log(GAMMA)).cast("int")).otherwise(F.lit(NOTHING))
