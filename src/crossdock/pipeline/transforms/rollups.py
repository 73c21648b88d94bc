"""The rollups of a batch: one grouped pass each, united into one frame that the driver collects.

Each key is as coarse as the tables made from it allow. Kind and error group are counted by day only: with 5,000 queues,
hourly counts by kind would have nearly as many rows as the events.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.schemas.appended import COUNTS_DAY, COUNTS_HOUR, FAILURES_DAY, HIST_DAY, WORK
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.transforms.durations import fine_bucket, log_bucket
from crossdock.pipeline.transforms.events import date_of_day, date_of_slot, hour_of_slot, slot_of
from crossdock.pipeline.transforms.rows import total_s

#: Column with the name of the rollup that a row belongs to.
ROLLUP: Final = "rollup"

#: States in which a job does not run again by itself.
ENDED: Final = ("complete", "failed", "dead", "gone")

#: Events that need no row per kind: `hist_day` counts leases, and the others are no transitions of a job's result.
_UNCOUNTED_BY_KIND: Final = ("leased", "renewed", "readied", "scheduled", "noted", "tagged", "reprioritised")

_MESSAGE: Final = 500
_CAUSE: Final = 200
#: As `model.job.error_group` folds them: UUIDs, hexadecimal numbers, long runs of hexadecimal digits, and numbers.
_VARIES: Final = (
    r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b|[0-9]+"
)

_HOUR_S: Final = 3_600
#: Hours that one attempt is spread over at most, counted from its end. A clock change can make it any length.
_LONGEST_H: Final = 31 * 24


def rollups(events: DataFrame) -> DataFrame:
    """All rollups of these events, with a column that names the rollup. Columns of other rollups are null."""
    parts = {
        COUNTS_HOUR: counts_hour(events),
        COUNTS_DAY: counts_day(events),
        HIST_DAY: hist_day(events),
        FAILURES_DAY: failures_day(events),
        WORK: work(events),
    }
    fields = {field.name: field.type for schema in parts for field in schema.arrow}
    whole: DataFrame | None = None
    for schema, rows in parts.items():
        part = rows.select(
            F.lit(schema.name).alias(ROLLUP),
            *(F.col(name) if name in schema.names else F.lit(None).alias(name) for name in fields),
        )
        whole = part if whole is None else whole.unionAll(part)
    assert whole is not None
    return whole


def counts_hour(events: DataFrame) -> DataFrame:
    at = F.col("at")
    grouped = events.groupBy(
        "server",
        slot_of(at).alias("slot"),
        "flush_epoch",
        "queue",
        "to_queue",
        F.col("origin").alias("protocol"),
        "event",
        "state",
        _is("over").alias("over"),
    ).agg(F.count("*").alias("n"), F.min(at).alias("first_at"), F.max(at).alias("last_at"))
    return _declared(COUNTS_HOUR, _with_hour(grouped))


def counts_day(events: DataFrame) -> DataFrame:
    counted = F.col("number").isNotNull() & ~F.col("event").isin(*_UNCOUNTED_BY_KIND)
    grouped = (
        events.where(counted)
        .groupBy(
            F.floor(F.col("at") / 86_400).alias("day"),
            "server",
            "flush_epoch",
            "queue",
            "kind",
            F.col("origin").alias("protocol"),
            "event",
            "state",
            "outcome",
            _is("lost").alias("lost"),
            F.coalesce(F.col("attempt") > 1, F.lit(False)).alias("again"),
            _is("over").alias("over"),
            F.when(F.col("event") == "failed", F.coalesce("error_group", F.lit(""))).alias("error_group"),
        )
        .agg(F.count("*").alias("n"), _seconds(F.when(F.col("outcome").isNotNull(), F.col("run_s"))).alias("run_s"))
    )
    return _declared(COUNTS_DAY, grouped.withColumn("date", date_of_day(F.col("day"))))


def hist_day(events: DataFrame) -> DataFrame:
    """A row of the lake books a wait, a run or counts on one page. Both kinds of bucket are monotonic in the value, so
    a page has at most as many pairs of buckets as it has buckets of both kinds together."""
    value = F.when(F.col("booked_wait"), F.col("wait_s")).when(F.col("booked_run"), F.col("run_s"))
    what = F.when(F.col("booked_wait"), "wait").when(F.col("booked_run"), "run").otherwise("count")
    booked = events.where(F.col("booked_day").isNotNull()).select(
        "server",
        F.col("booked_day").alias("day"),
        "flush_epoch",
        F.col("booked_queue").alias("queue"),
        "kind",
        what.alias("what"),
        fine_bucket(value).alias("fine"),
        F.when(value.isNotNull(), log_bucket(value)).alias("log"),
        value.alias("value"),
        *(F.col(f"booked_{name}").alias(name) for name in ("failures", "failed", "retries")),
    )
    total = total_s()
    totals = events.where(F.col("event").isin("succeeded", "rescheduled") & total.isNotNull()).select(
        "server",
        F.floor(F.col("at") / 86_400).alias("day"),
        "flush_epoch",
        "queue",
        "kind",
        F.lit("total").alias("what"),
        F.lit(None).cast("int").alias("fine"),
        log_bucket(total).alias("log"),
        total.alias("value"),
        *(F.lit(None).cast("long").alias(name) for name in ("failures", "failed", "retries")),
    )
    value = F.col("value")
    grouped = (
        booked.unionAll(totals)
        .groupBy("day", "server", "flush_epoch", "queue", "kind", "what", "fine", "log")
        .agg(
            F.count(value).alias("n"),
            F.avg(value).alias("mean"),
            (F.var_pop(value) * F.count(value)).alias("m2"),
            F.max(value).alias("max"),
            *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in ("failures", "failed", "retries")),
        )
    )
    return _declared(HIST_DAY, grouped.withColumn("date", date_of_day(F.col("day"))))


def failures_day(events: DataFrame) -> DataFrame:
    """Failures without a lease are included: a job whose dependency was lost, or one that Workq fails without a
    lease."""
    message = F.substring(F.coalesce("error_message", F.lit("")), 1, _MESSAGE)
    failed = events.where(F.col("event") == "failed").select(
        "server",
        "queue",
        "kind",
        F.coalesce("error_group", F.lit("")).alias("error_group"),
        F.substring(F.regexp_replace(message, _VARIES, "N"), 1, _CAUSE).alias("cause"),
        F.floor(F.col("at") / 86_400).alias("day"),
        "at",
        F.col("state").isin(*ENDED).alias("died"),
        F.struct("seq", "jid", message.alias("message")).alias("example"),
    )
    grouped = failed.groupBy("day", "server", "queue", "kind", "error_group", "cause").agg(
        F.count("*").alias("n"),
        F.count_if("died").alias("deaths"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        F.min("example").alias("example"),
    )
    named = grouped.withColumns({name: F.col(f"example.{name}") for name in ("seq", "jid", "message")})
    return _declared(FAILURES_DAY, named.withColumn("date", date_of_day(F.col("day"))))


def work(events: DataFrame) -> DataFrame:
    """An attempt counts in the hour in which it ended, and its time in each hour that it touched."""
    start, end = F.col("leased_at"), F.col("at")
    last = slot_of(end)
    first = F.greatest(F.least(slot_of(start), last), last - (_LONGEST_H - 1))
    rows = events.where(F.col("outcome").isNotNull()).select(
        "server",
        "worker",
        F.col("lease_via").alias("protocol"),
        "outcome",
        start.alias("start"),
        end.alias("end"),
        first.alias("first"),
        last.alias("last"),
    )
    begins = F.col("slot") * _HOUR_S
    within = F.least("end", begins + _HOUR_S) - F.greatest("start", begins)
    # Most attempts touch one hour. Only the others need a row per hour.
    key = ("server", "worker", "protocol", "outcome")
    short = rows.where(F.col("first") == F.col("last")).select(
        *key, F.col("last").alias("slot"), (F.col("end") - F.col("start")).alias("busy_s"), F.lit(1).alias("ended")
    )
    long = (
        rows.where(F.col("first") < F.col("last"))
        .withColumn("slot", F.explode(F.sequence("first", "last")))
        .select(*key, "slot", within.alias("busy_s"), (F.col("slot") == F.col("last")).cast("int").alias("ended"))
    )
    grouped = (
        short.unionAll(long)
        .groupBy(*key, "slot")
        .agg(_seconds(F.greatest("busy_s", F.lit(0.0))).alias("busy_s"), F.sum("ended").alias("n"))
    )
    return _declared(WORK, _with_hour(grouped))


def _is(column: str) -> Column:
    return F.coalesce(F.col(column), F.lit(False))


def _seconds(value: Column) -> Column:
    return F.coalesce(F.sum(value), F.lit(0.0))


def _with_hour(rows: DataFrame) -> DataFrame:
    """The date and the hour are computed after grouping, for few rows."""
    slot = F.col("slot")
    return rows.withColumns({"date": date_of_slot(slot), "hour": hour_of_slot(slot)})


def _declared(schema: TableSchema, rows: DataFrame) -> DataFrame:
    return rows.select(*schema.names)
