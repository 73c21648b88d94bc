"""Tables `histogram` and `daily`, both of the bookings of a day."""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, IntegerType, LongType, StringType, StructField, StructType

from crossdock.pipeline.transforms.bookings import merge_bookings
from crossdock.pipeline.transforms.durations import collected, merged, of_log_bucket, variance

_KEY: Final = ("date", "flush_epoch", "queue", "kind")
_KEY_FIELDS: Final = (
    StructField("date", DateType()),
    StructField("flush_epoch", LongType()),
    StructField("queue", StringType()),
    StructField("kind", StringType()),
)
_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_DAY_S: Final = 86_400
_VALUES: Final = ("mean", "vk", "variance", "max", *_PERCENTILES)

HISTOGRAM: Final = StructType(
    [
        *_KEY_FIELDS,
        StructField("event", StringType()),  # wait or run
        StructField("fine", IntegerType()),
        StructField("log", IntegerType()),
        StructField("n", LongType()),
        StructField("mean", DoubleType()),
        StructField("m2", DoubleType()),
        StructField("max", DoubleType()),
    ]
)

DAILY: Final = StructType(
    [
        *_KEY_FIELDS,
        *(
            StructField(f"{event}_{name}", LongType() if name == "total" else DoubleType())
            for event in ("wait", "run")
            for name in ("total", *_VALUES)
        ),
        StructField("failures", LongType()),
        StructField("failed", LongType()),
        StructField("retries", LongType()),
        StructField("throughput", DoubleType()),  # runs a second, over the whole day
    ]
)


def histogram(facts: DataFrame) -> DataFrame:
    return merge_bookings(facts).where(F.col("event") != "count").select(*HISTOGRAM.fieldNames())


def daily(facts: DataFrame) -> DataFrame:
    page = Window.partitionBy(*_KEY, "event")
    upwards = page.orderBy("log").rangeBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = (
        merge_bookings(facts)
        .withColumn("upto", F.sum("n").over(upwards))
        .withColumn("all", F.sum("n").over(page))
    )  # fmt: skip
    grouped = ranked.groupBy(*_KEY).agg(
        *(each for event in ("wait", "run") for each in _of(event)),
        *(F.sum(name).cast("long").alias(name) for name in ("failures", "failed", "retries")),
    )
    columns: list[Column] = []
    for event in ("wait", "run"):
        moments = merged(F.col(f"{event}_moments"))
        n, m2 = moments["n"], moments["m2"]
        columns += [
            n.alias(f"{event}_total"),
            moments["mean"].alias(f"{event}_mean"),
            m2.alias(f"{event}_vk"),
            variance(n, m2).alias(f"{event}_variance"),
            F.col(f"{event}_max"),
            *(F.least(of_log_bucket(F.col(f"{event}_{p}")), F.col(f"{event}_max")).alias(f"{event}_{p}")
              for p in _PERCENTILES),
        ]  # fmt: skip
    whole = grouped.select(*_KEY, *columns, "failures", "failed", "retries")
    return whole.withColumn("throughput", F.col("run_total") / _DAY_S).select(*DAILY.fieldNames())


def _of(event: str) -> list[Column]:
    """What the rows of one sort add to their page: rows of the other sorts count as none."""
    here = F.col("event") == event
    smallest = {
        name: F.min(F.when(here & (F.col("upto") >= F.ceil(F.col("all") * share)), F.col("log")))
        for name, share in _PERCENTILES.items()
    }
    return [
        collected(here).alias(f"{event}_moments"),
        F.max(F.when(here, F.col("max"))).alias(f"{event}_max"),
        *(column.alias(f"{event}_{name}") for name, column in smallest.items()),
    ]
