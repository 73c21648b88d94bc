"""Fact `tallies`: what came into each queue and left it, by the hour of the server's clock.

A job is in a queue from its push (or its arrival from another queue) until it succeeds, fails for good, is moved on or
removed. One that is over had left before: removed or killed it leaves no more, and put anew or readied it comes back.
One that Resqu puts on its queue, or lets come again, has left if that is another one.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.pipeline.transforms.events import date_of_slot, hour_of_slot, slot_of, time_of

_KEY: Final = ("date", "hour", "flush_epoch", "queue", "kind")
_COUNTS: Final = ("arrived", "departed", "leased", "succeeded", "failed", "lapsed")

TALLIES: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("hour", TimestampType()),
        StructField("flush_epoch", LongType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        *(StructField(name, LongType()) for name in _COUNTS),
        StructField("last", TimestampType()),  # event of these
    ]
)

_OVER: Final = ("complete", "failed", "dead", "gone")


def tallies(events: DataFrame) -> DataFrame:
    """One grouped pass by both queues, where a job went on to another; its few rows then count for each of the two.

    So an hour of a queue may have several rows: whoever reads them merges them.
    """
    event, state, over = F.col("event"), F.col("state"), F.coalesce(F.col("over"), F.lit(False))
    went_on = F.col("to_queue").isNotNull()
    went_elsewhere = event.isin("put-on-queue", "rescheduled") & (F.col("to_queue") != F.col("queue"))
    left = (
        (event == "succeeded")
        | ((event == "failed") & (went_on | state.isin(*_OVER)))
        | (event == "advanced")
        | (event.isin("buried", "moved", "removed") & ~over)
        | went_elsewhere
    )
    counted = {
        "arrived": (event == "pushed") | ((event == "readied") & over),
        "departed": left,
        **{name: event == name for name in _COUNTS[2:]},
    }
    told = ("pushed", "leased", "succeeded", "failed", "lapsed", "buried", "advanced", "moved", "removed", "revived")
    grouped = (
        events.where(event.isin(*told) | ((event == "readied") & over) | went_elsewhere)
        .groupBy(slot_of(F.col("at")).alias("slot"), "flush_epoch", "kind", "queue", "to_queue")
        .agg(
            *(F.count_if(which).alias(name) for name, which in counted.items()),
            F.count_if(~over | state.isNotNull()).alias("came"),
            time_of(F.max("at")).alias("last"),
        )
    )
    here = F.struct("queue", *_COUNTS)
    there = F.struct(
        F.col("to_queue").alias("queue"),
        F.col("came").alias("arrived"),
        *(F.lit(0).cast("long").alias(name) for name in _COUNTS[1:]),
    )
    sides = F.explode(F.when(went_on, F.array(here, there)).otherwise(F.array(here)))
    slot = F.col("slot")
    rows = grouped.select(
        date_of_slot(slot).alias("date"),
        hour_of_slot(slot).alias("hour"),
        "flush_epoch",
        "kind",
        sides.alias("tally"),
        "last",
    )
    return rows.select("date", "hour", "flush_epoch", "kind", "tally.*", "last").select(*TALLIES.fieldNames())


def merge_tallies(facts: DataFrame) -> DataFrame:
    sums = (F.sum(name).cast("long").alias(name) for name in _COUNTS)
    summed = facts.groupBy(*_KEY).agg(*sums, F.max("last").alias("last"))
    return summed.select(*TALLIES.fieldNames())
