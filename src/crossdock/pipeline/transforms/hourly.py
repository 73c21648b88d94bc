"""Tables `hourly` and `forecast`, both of the tallies: rates, and when a queue would be empty at these rates."""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.pipeline.transforms.tallies import TALLIES, merge_tallies

HOURLY: Final = StructType([*TALLIES.fields, StructField("depth_change", LongType())])

FORECAST: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("hour", TimestampType()),
        StructField("era", LongType()),
        StructField("queue", StringType()),
        StructField("depth", LongType()),  # jobs in the queue when the hour ended
        StructField("arrival_rate", DoubleType()),  # a second, over SPAN_H hours
        StructField("service_rate", DoubleType()),
        StructField("empty_in_s", DoubleType()),  # null: never, at these rates
    ]
)

#: Hours that a rate is the mean of.
SPAN_H: Final = 3


def hourly(facts: DataFrame) -> DataFrame:
    change = F.col("arrived") - F.col("departed")
    return merge_tallies(facts).withColumn("depth_change", change).select(*HOURLY.fieldNames())


def forecast(facts: DataFrame) -> DataFrame:
    """Of all facts since the beginning: a queue's depth is the sum of all that came and went."""
    hours = facts.groupBy("date", "hour", "era", "queue").agg(
        F.sum("arrived").alias("arrived"), F.sum("departed").alias("departed")
    )
    queue = Window.partitionBy("era", "queue").orderBy(F.unix_seconds("hour"))
    span = queue.rangeBetween(-(SPAN_H - 1) * 3_600, 0)
    so_far = queue.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    rates = hours.select(
        "date",
        "hour",
        "era",
        "queue",
        F.sum(F.col("arrived") - F.col("departed")).over(so_far).alias("depth"),
        (F.sum("arrived").over(span) / (SPAN_H * 3_600)).alias("arrival_rate"),
        (F.sum("departed").over(span) / (SPAN_H * 3_600)).alias("service_rate"),
    )
    surplus = F.col("service_rate") - F.col("arrival_rate")
    empty = F.when(F.col("depth") <= 0, F.lit(0.0)).when(surplus > 0, F.col("depth") / surplus)
    return rates.withColumn("empty_in_s", empty).select(*FORECAST.fieldNames())
