"""Tables `workers` and `retries`, both of the attempts that ended on a day."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, DoubleType, LongType, StringType, StructField, StructType, TimestampType

from crossdock.pipeline.transforms.attempts import SPENT

WORKERS: Final = StructType(
    [
        StructField("date", DateType()),  # on which the attempts ended
        StructField("hour", TimestampType()),  # in which the work was done: it may be of the day before
        StructField("worker", StringType()),
        StructField("door", StringType()),
        StructField("busy_s", DoubleType()),
        StructField("utilisation", DoubleType()),
        StructField("attempts", LongType()),  # that ended in that hour, and so are the next three
        StructField("succeeded", LongType()),
        StructField("spent", LongType()),
        StructField("other", LongType()),
    ]
)

RETRIES: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        StructField("attempts", LongType()),
        StructField("again", LongType()),  # beyond the first of their job
        StructField("spent", LongType()),  # that came to nothing
        StructField("run_s", DoubleType()),
        StructField("spent_s", DoubleType()),
    ]
)

_HOUR_S: Final = 3_600
#: Hours that one attempt is spread over, at most: the last ones. A clock that was set may have made it any length.
_LONGEST_H: Final = 31 * 24
_SUCCESS: Final = ("succeeded", "advanced")


def workers(attempts: DataFrame) -> DataFrame:
    start, end = F.unix_micros("leased_at") / 1_000_000, F.unix_micros("closed_at") / 1_000_000
    last = F.floor(F.col("end") / _HOUR_S)
    first = F.greatest(F.least(F.floor(F.col("start") / _HOUR_S), last), last - (_LONGEST_H - 1))
    begins = F.col("slot") * _HOUR_S
    busy = F.least(F.col("end"), begins + _HOUR_S) - F.greatest(F.col("start"), begins)
    rows = (
        attempts.select("date", "worker", F.col("door_out").alias("door"), "outcome",
                        start.alias("start"), end.alias("end"))
        .withColumn("slot", F.explode(F.sequence(first, last)))
        .select("date", F.timestamp_seconds(begins).alias("hour"), "worker", "door", "outcome",
                F.greatest(busy, F.lit(0.0)).alias("busy_s"), (F.col("slot") == last).alias("ended"))
    )  # fmt: skip
    ended = F.col("ended")
    success, spent = F.col("outcome").isin(*_SUCCESS), F.col("outcome").isin(*SPENT)
    grouped = rows.groupBy("date", "hour", "worker", "door").agg(
        F.sum("busy_s").alias("busy_s"),
        F.count_if(ended).alias("attempts"),
        F.count_if(ended & success).alias("succeeded"),
        F.count_if(ended & spent).alias("spent"),
        F.count_if(ended & ~success & ~spent).alias("other"),
    )
    return grouped.withColumn("utilisation", F.col("busy_s") / _HOUR_S).select(*WORKERS.fieldNames())


def retries(attempts: DataFrame) -> DataFrame:
    spent = F.col("outcome").isin(*SPENT)
    grouped = attempts.groupBy("date", "queue", "kind").agg(
        F.count("*").alias("attempts"),
        F.count_if(F.col("attempt") > 1).alias("again"),
        F.count_if(spent).alias("spent"),
        F.coalesce(F.sum("run_s"), F.lit(0.0)).alias("run_s"),
        F.coalesce(F.sum(F.when(spent, F.col("run_s"))), F.lit(0.0)).alias("spent_s"),
    )
    return grouped.select(*RETRIES.fieldNames())
