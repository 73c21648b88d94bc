"""Row-level tables: `attempts`, the rows of the lake with an outcome, and `links`, the rows that connect jobs."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.schemas.appended import ATTEMPTS, LINKS
from crossdock.pipeline.transforms.events import date_of, time_of


def attempts(events: DataFrame) -> DataFrame:
    """One row per lease that ended."""
    at = F.col("at")
    return (
        events.where(F.col("outcome").isNotNull())
        .select(
            date_of(at).alias("date"),
            "server",
            "seq",
            "flush_epoch",
            "jid",
            "number",
            "attempt",
            "queue",
            "kind",
            F.col("origin").alias("protocol_in"),
            F.col("lease_via").alias("protocol_out"),
            F.col("via").alias("settled_by"),
            "worker",
            time_of(F.col("pushed_at")).alias("pushed_at"),
            time_of(F.col("leased_at")).alias("leased_at"),
            time_of(at).alias("closed_at"),
            "outcome",
            "state",
            "wait_s",
            "run_s",
            total_s().alias("total_s"),
            "beats",
            "lost",
            "error_group",
            "error_message",
        )
        .select(*ATTEMPTS.names)
    )


def total_s() -> Column:
    """Seconds from push to success; null for other events. A job that Resqu reschedules has succeeded, too."""
    done = (F.col("event") == "succeeded") | ((F.col("event") == "rescheduled") & (F.col("outcome") == "succeeded"))
    known = F.col("pushed_at").isNotNull()  # greatest() ignores nulls
    return F.when(done & known, F.greatest(F.col("at") - F.col("pushed_at"), F.lit(0.0)))


def links(events: DataFrame) -> DataFrame:
    """One row per event that names a batch, a callback or a dependency."""
    linked = F.col("group_name").isNotNull() | F.col("callback_of").isNotNull() | F.col("needs").isNotNull()
    number = F.col("number")
    jobs = F.array_append(F.coalesce(F.transform("needs", _absolute), F.array().cast("array<bigint>")), number)
    return events.where(linked).select(
        date_of(F.col("at")).alias("date"),
        "server",
        "seq",
        time_of(F.col("at")).alias("at"),
        *LINKS.names[4:-2],
        F.array_min(jobs).alias("lowest"),
        F.array_max(jobs).alias("highest"),
    )


def _absolute(need: Column) -> Column:
    """A negative dependency is relative to the job that has it."""
    return F.when(need < 0, F.col("number") + need).otherwise(need)
