"""Fact `settings`: the two of how long statistics are kept, as clients set them, and the flushes that undid them."""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType

from crossdock.model.stats_retention import HISTOGRAM_HISTORY, STATS_HISTORY
from crossdock.pipeline.transforms.events import date_of

SETTINGS: Final = StructType(
    [
        StructField("date", DateType()),
        StructField("seq", LongType()),
        StructField("flush_epoch", LongType()),
        StructField("event", StringType()),
        StructField("option", StringType()),
        StructField("value", StringType()),  # null: as if it had never been set
    ]
)


def settings(events: DataFrame) -> DataFrame:
    event = F.col("event")
    told = (event == "configured") & F.col("why").isin(STATS_HISTORY, HISTOGRAM_HISTORY)
    return events.where(told | (event == "flushed")).select(
        date_of(F.col("at")).alias("date"),
        "seq",
        "flush_epoch",
        "event",
        F.col("why").alias("option"),
        F.col("detail").alias("value"),
    )
