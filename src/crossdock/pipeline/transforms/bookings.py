"""Fact `bookings`: what the engine booked for its statistics, one grouped pass over the rows that book.

A row books on one page: a wait, or a run, or counts. Both buckets grow with the value, so a page has no more pairs of
them than it has buckets of either sort together.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from crossdock.pipeline.transforms.durations import collected, fine_bucket, log_bucket, merged
from crossdock.pipeline.transforms.events import date_of_day

BOOKINGS = StructType(
    [
        StructField("date", DateType()),
        StructField("flush_epoch", LongType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        StructField("event", StringType()),  # wait, run, or count
        StructField("fine", IntegerType()),  # null for count, as the rest up to max
        StructField("log", IntegerType()),
        StructField("n", LongType()),
        StructField("mean", DoubleType()),
        StructField("m2", DoubleType()),
        StructField("max", DoubleType()),
        StructField("failures", LongType()),
        StructField("failed", LongType()),
        StructField("retries", LongType()),
        StructField("seq", LongType()),  # of the first event
    ]
)

_PAGE = ("date", "flush_epoch", "queue", "kind", "event", "fine", "log")
_COUNTS = ("failures", "failed", "retries")


def bookings(events: DataFrame) -> DataFrame:
    value = F.when(F.col("booked_wait"), F.col("wait_s")).when(F.col("booked_run"), F.col("run_s"))
    what = F.when(F.col("booked_wait"), "wait").when(F.col("booked_run"), "run").otherwise("count")
    rows = events.where(F.col("booked_day").isNotNull()).select(
        "seq",
        "booked_day",
        "flush_epoch",
        F.col("booked_queue").alias("queue"),
        "kind",
        what.alias("event"),
        value.alias("value"),
        *(F.col(f"booked_{name}").alias(name) for name in _COUNTS),
    )
    value = F.col("value")
    buckets = rows.withColumn("fine", fine_bucket(value)).withColumn(
        "log", F.when(value.isNotNull(), log_bucket(value))
    )
    # The date is made of the few rows that are left.
    grouped = buckets.groupBy("booked_day", *_PAGE[1:]).agg(
        F.count(value).alias("n"),
        F.avg(value).alias("mean"),
        (F.var_pop(value) * F.count(value)).alias("m2"),
        F.max(value).alias("max"),
        *_sums(),
    )
    return _declared(grouped.withColumn("date", date_of_day(F.col("booked_day"))))


def merge_bookings(facts: DataFrame) -> DataFrame:
    """Facts of several batches as if they had been one."""
    grouped = facts.groupBy(*_PAGE).agg(collected(_is_value()).alias("moments"), F.max("max").alias("max"), *_sums())
    whole = grouped.withColumn("moments", merged(F.col("moments")))
    columns = (F.when(_is_value(), F.col("moments")[name]).alias(name) for name in ("mean", "m2"))
    return _declared(whole.select(*_PAGE, F.col("moments")["n"].alias("n"), *columns, "max", *_COUNTS, "seq"))


def _is_value() -> Column:
    return F.col("event") != "count"


def _sums() -> list[Column]:
    return [*(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTS), F.min("seq").alias("seq")]


def _declared(rows: DataFrame) -> DataFrame:
    return rows.select(*(F.col(field.name).cast(field.dataType) for field in BOOKINGS))
