"""Buckets and moments of durations: what the engine books (engine/records/stats.py), as columns.

Moments are (n, mean, m2) of float64 seconds and are merged by Chan's formula: sums of squares lose all digits where
the mean is large and the spread is small. Percentiles come from counts in buckets that grow by 4 %, which merge by
addition and are off by no more than half of that.
"""

from math import log
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

GAMMA: Final = 1.04
#: The log bucket of what is zero or below.
NOTHING: Final = -10_000


def fine_bucket(value: Column) -> Column:
    """The bucket of qless' seed: seconds to a minute, minutes to an hour, quarters to a day, hours to three, days; one
    for all that is below 0, and one for what is longer than the others have room for."""
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


def of_log_bucket(bucket: Column) -> Column:
    """A value no further than 1.97 % from any in the bucket."""
    middle = F.pow(F.lit(GAMMA), bucket.cast("double")) * (2 / (GAMMA + 1))
    return F.when(bucket == NOTHING, F.lit(0.0)).otherwise(middle)


def collected(which: Column) -> Column:
    """Aggregate: the moments (n, mean, m2) of such rows, sorted, so that merging them always gives the same bits."""
    return F.array_sort(F.collect_list(F.when(which, F.struct("n", "mean", "m2"))))


def merged(moments: Column) -> Column:
    """The moments of all: (n, mean, m2) by Chan's formula, one after the other."""
    nothing = F.struct(F.lit(0).cast("long").alias("n"), F.lit(0.0).alias("mean"), F.lit(0.0).alias("m2"))

    def merge(left: Column, right: Column) -> Column:
        n = left["n"] + right["n"]
        apart = right["mean"] - left["mean"]
        share = right["n"] / n
        together = F.struct(
            n.alias("n"),
            (left["mean"] + apart * share).alias("mean"),
            (left["m2"] + right["m2"] + apart * apart * left["n"] * share).alias("m2"),
        )
        return F.when(right["n"] == 0, left).otherwise(together)  # nothing and nothing have no share

    return F.aggregate(moments, nothing, merge)


def variance(n: Column, m2: Column) -> Column:
    return F.when(n > 1, m2 / (n - 1)).otherwise(F.lit(0.0))
