"""Fact `failing` and table `failures`: which errors there were, how often, in how many jobs, since when, for example.

A failure without a lease (a job whose need was lost, a Workq job failed by hand) is one, too.
"""

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from crossdock.pipeline.transforms.events import date_of, time_of

EXAMPLES: Final = 5
_MESSAGE: Final = 500  #: characters of a message that are kept

_KEY: Final = ("date", "queue", "error_group", "number")

FAILING: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("queue", StringType()),
        StructField("error_group", StringType()),
        StructField("number", LongType()),
        StructField("n", LongType()),
        StructField("first", TimestampType()),
        StructField("last", TimestampType()),
        StructField("seq", LongType()),  # of the first, and so are the next two
        StructField("jid", StringType()),
        StructField("message", StringType()),
    ]
)

_EXAMPLE: Final = StructType(
    [StructField("jid", StringType()), StructField("at", TimestampType()), StructField("message", StringType())]
)

FAILURES: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("queue", StringType()),
        StructField("error_group", StringType()),
        StructField("n", LongType()),
        StructField("jobs", LongType()),
        StructField("first", TimestampType()),
        StructField("last", TimestampType()),
        StructField("examples", ArrayType(_EXAMPLE)),  # of the first jobs, up to EXAMPLES
    ]
)


def failing(events: DataFrame) -> DataFrame:
    at = time_of(F.col("at"))
    rows = events.where(F.col("event") == "failed").select(
        date_of(F.col("at")).alias("date"),
        "queue",
        F.coalesce(F.col("error_group"), F.lit("")).alias("error_group"),
        "number",
        F.lit(1).alias("n"),
        at.alias("first"),
        at.alias("last"),
        "seq",
        "jid",
        F.substring(F.coalesce(F.col("error_message"), F.lit("")), 1, _MESSAGE).alias("message"),
    )
    return merge_failing(rows)


def merge_failing(facts: DataFrame) -> DataFrame:
    grouped = facts.groupBy(*_KEY).agg(
        F.sum("n").cast("long").alias("n"),
        F.max("last").alias("last"),
        F.min(F.struct("seq", "first", "jid", "message")).alias("example"),
    )
    return grouped.select(*_KEY, "n", "last", "example.*").select(*FAILING.fieldNames())


def failures(facts: DataFrame) -> DataFrame:
    jobs = merge_failing(facts)
    group = ("date", "queue", "error_group")
    ranked = jobs.withColumn("rank", F.row_number().over(Window.partitionBy(*group).orderBy("seq")))
    example = F.struct("seq", "jid", F.col("first").alias("at"), "message")
    grouped = ranked.groupBy(*group).agg(
        F.sum("n").cast("long").alias("n"),
        F.count("*").alias("jobs"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.array_sort(F.collect_list(F.when(F.col("rank") <= EXAMPLES, example))).alias("examples"),
    )
    shown = F.transform("examples", lambda each: F.struct(each["jid"], each["at"], each["message"]))
    return grouped.select(*group, "n", "jobs", "first", "last", shown.alias("examples"))
