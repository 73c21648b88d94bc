"""Tables `hourly` and `forecast`, both of the tallies: rates, and when a queue would be empty at these rates."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.pipeline.transforms.queue_flow import TALLIES, merge_tallies

HOURLY: Final = StructType([*TALLIES.fields[:-1], StructField("depth_change", LongType())])

FORECAST: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("hour", TimestampType()),
        StructField("flush_epoch", LongType()),
        StructField("queue", StringType()),
        StructField("depth", LongType()),  # jobs in the queue when the hour ended, or so far
        StructField("arrival_rate", DoubleType()),  # a second, over up to SPAN_H hours
        StructField("service_rate", DoubleType()),
        StructField("empty_in_s", DoubleType()),  # null: never, at these rates
    ]
)

#: Hours that a rate is the mean of, this one included; less where the queue began later, or the hour is not over.
SPAN_H: Final = 3
_HOUR_S: Final = 3_600


def hourly(facts: DataFrame) -> DataFrame:
    change = F.col("arrived") - F.col("departed")
    return merge_tallies(facts).withColumn("depth_change", change).select(*HOURLY.fieldNames())


def forecast(facts: DataFrame) -> DataFrame:
    """Of all facts since the beginning: a queue's depth is the sum of all that came and went. The hour of the newest
    event goes on: it counts up to there."""
    hours = facts.groupBy("date", "hour", "flush_epoch", "queue").agg(
        F.sum("arrived").alias("arrived"), F.sum("departed").alias("departed")
    )
    hour = F.unix_seconds("hour")
    queue = Window.partitionBy("flush_epoch", "queue").orderBy(hour)
    span = queue.rangeBetween(-(SPAN_H - 1) * _HOUR_S, 0)
    so_far = queue.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = facts.agg((F.unix_micros(F.max("last")) / 1_000_000).alias("newest"))
    begun = F.greatest(F.min(hour).over(so_far), hour - (SPAN_H - 1) * _HOUR_S)
    seconds = F.greatest(F.least(hour + _HOUR_S, F.col("newest")) - begun, F.lit(1.0))
    rates = hours.crossJoin(F.broadcast(newest)).select(
        "date",
        "hour",
        "flush_epoch",
        "queue",
        F.sum(F.col("arrived") - F.col("departed")).over(so_far).alias("depth"),
        (F.sum("arrived").over(span) / seconds).alias("arrival_rate"),
        (F.sum("departed").over(span) / seconds).alias("service_rate"),
    )
    surplus = F.col("service_rate") - F.col("arrival_rate")
    empty = F.when(F.col("depth") <= 0, F.lit(0.0)).when(surplus > 0, F.col("depth") / surplus)
    return rates.withColumn("empty_in_s", empty).select(*FORECAST.fieldNames())
