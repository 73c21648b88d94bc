"""Fact `links`: which jobs are parts of something larger."""

from typing import Final

from pyspark.sql import DataFrame
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

LINKS: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("seq", LongType()),
        StructField("at", TimestampType()),
        StructField("event", StringType()),
        StructField("number", LongType()),
        StructField("jid", StringType()),
        StructField("queue", StringType()),
        StructField("group_name", StringType()),
        StructField("callback_of", StringType()),
        StructField("parent_group", StringType()),
        StructField("needs", ArrayType(LongType())),
    ]
)


def links(events: DataFrame) -> DataFrame:
    linked = F.col("group_name").isNotNull() | F.col("callback_of").isNotNull() | F.col("needs").isNotNull()
    return events.where(linked).select(
        date_of(F.col("at")).alias("date"), "seq", time_of(F.col("at")).alias("at"), *LINKS.fieldNames()[3:]
    )
