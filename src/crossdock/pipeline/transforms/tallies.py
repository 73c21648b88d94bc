"""Fact `tallies`: what came into each queue and left it, by the hour of the server's clock.

A job is in a queue from its push (or its arrival from another queue) until it succeeds, fails for good, is moved on or
removed. A kept job that is removed, or a failed one that is put anew, had left before.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.pipeline.transforms.events import date_of, hour_of

_KEY: Final = ("date", "hour", "era", "queue", "kind")
_COUNTS: Final = ("arrived", "departed", "leased", "succeeded", "failed", "lapsed")

TALLIES: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("hour", TimestampType()),
        StructField("era", LongType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        *(StructField(name, LongType()) for name in _COUNTS),
    ]
)

_OVER: Final = ("complete", "failed", "dead", "gone")
#: Removed for these reasons, a job had ended before.
_ENDED: Final = ("retired", "purged")


def tallies(events: DataFrame) -> DataFrame:
    event, state, failed_at = F.col("event"), F.col("state"), F.col("failed_at")
    went_on = F.col("to_queue").isNotNull()
    removed = (event == "removed") & failed_at.isNull() & ~F.coalesce(F.col("why"), F.lit("")).isin(*_ENDED)
    left = (
        (event == "succeeded")
        | ((event == "failed") & (went_on | state.isin(*_OVER)))
        | (event == "buried")
        | (event == "advanced")
        | ((event == "moved") & failed_at.isNull())
        | removed
    )
    here = F.struct(
        F.col("queue").alias("queue"),
        _one(event == "pushed").alias("arrived"),
        _one(left).alias("departed"),
        _one(event == "leased").alias("leased"),
        _one(event == "succeeded").alias("succeeded"),
        _one(event == "failed").alias("failed"),
        _one(event == "lapsed").alias("lapsed"),
    )
    there = F.struct(
        F.col("to_queue").alias("queue"),
        F.lit(1).alias("arrived"),
        *(F.lit(0).alias(name) for name in _COUNTS[1:]),
    )
    told = ("pushed", "leased", "succeeded", "failed", "lapsed", "buried", "advanced", "moved", "removed", "revived")
    rows = events.where(event.isin(*told)).select(
        date_of(F.col("at")).alias("date"),
        hour_of(F.col("at")).alias("hour"),
        "era",
        "kind",
        F.explode(F.when(went_on, F.array(here, there)).otherwise(F.array(here))).alias("tally"),
    )
    return merge_tallies(rows.select("date", "hour", "era", "kind", "tally.*"))


def merge_tallies(facts: DataFrame) -> DataFrame:
    summed = facts.groupBy(*_KEY).agg(*(F.sum(name).cast("long").alias(name) for name in _COUNTS))
    return summed.select(*TALLIES.fieldNames())


def _one(condition: Column) -> Column:
    return F.when(condition, 1).otherwise(0)
