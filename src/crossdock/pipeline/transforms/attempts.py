"""Table `attempts`: one row per lease that ended. A row of the lake with an outcome says all about it: a filter."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from crossdock.pipeline.transforms.events import date_of, time_of

ATTEMPTS = StructType(
    [
        StructField("date", DateType()),  # it ended on
        StructField("seq", LongType()),
        StructField("flush_epoch", LongType()),
        StructField("jid", StringType()),
        StructField("number", LongType()),
        StructField("attempt", LongType()),
        StructField("queue", StringType()),
        StructField("kind", StringType()),
        StructField("door_in", StringType()),
        StructField("door_out", StringType()),
        StructField("settled_by", StringType()),
        StructField("worker", StringType()),
        StructField("leased_at", TimestampType()),
        StructField("closed_at", TimestampType()),
        StructField("outcome", StringType()),
        StructField("state", StringType()),
        StructField("wait_s", DoubleType()),
        StructField("run_s", DoubleType()),
        StructField("beats", LongType()),
        StructField("lost", BooleanType()),
        StructField("error_group", StringType()),
        StructField("error_message", StringType()),
    ]
)

#: Outcomes that spent a worker's time for nothing.
SPENT = ("failed", "lost", "lapsed", "stalled")


def attempts(events: DataFrame) -> DataFrame:
    return events.where(F.col("outcome").isNotNull()).select(
        date_of(F.col("at")).alias("date"),
        "seq",
        "flush_epoch",
        "jid",
        "number",
        "attempt",
        "queue",
        "kind",
        F.col("origin").alias("door_in"),
        F.col("lease_via").alias("door_out"),
        F.col("via").alias("settled_by"),
        "worker",
        time_of(F.col("leased_at")).alias("leased_at"),
        time_of(F.col("at")).alias("closed_at"),
        "outcome",
        "state",
        "wait_s",
        "run_s",
        "beats",
        "lost",
        "error_group",
        "error_message",
    )
