"""Replay of a long history by Spark: the choice of `crossdock job replay` (lake/query.py) as one plan over the lake.

It gives the same jobs the same ids: a replay that was begun without Spark goes on with it, and the other way round.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from crossdock.client.bulk import Where
from crossdock.lake.manifest import read_done
from crossdock.lake.query import LEASE_AT_MOST, NAMED, RETRIES, RETRIES_AT_MOST, Filter, Past
from crossdock.lake.redaction import REDACTED
from crossdock.pipeline.source.history import history
from crossdock.pipeline.source.source import FORMAT, register

_REDACTED: Final = bytearray(REDACTED.encode())


class Found(NamedTuple):
    """As `choosing.Chosen` counts them."""

    lake: str
    at: float
    good: int
    unknown: int
    bare: int
    named: list[str]
    sample: list[Past]
    jobs: DataFrame  #: columns of `Past`


def said(which: Filter) -> Column:
    """The events that a filter is about."""
    event = F.col("event")
    outcome = {
        "pushed": event == "pushed",
        "succeeded": event == "succeeded",
        "failed": event == "failed",
        "lost": ((event == "failed") & F.col("lost")) | (event == "lapsed"),
        "dead": ((event == "failed") & F.col("state").isin("dead", "failed", "gone")) | (event == "buried"),
        "removed": event == "removed",
    }[which.outcome]
    found = outcome & F.col("number").isNotNull()
    for name, value in (("queue", which.queue), ("kind", which.kind), ("error_group", which.group), ("jid", which.jid)):
        if value:
            found = found & (F.col(name) == value)
    if which.since is not None:
        found = found & (F.col("at") >= which.since)
    return found if which.until is None else found & (F.col("at") < which.until)


def meant(events: DataFrame, which: Filter) -> DataFrame:
    """Each job the filter means, as it was pushed, its payload as it was last. `good`: it can be pushed again; `bare`:
    the lake does not have its payload; `unknown`: nor its push."""
    numbers = events.where(said(which)).select("number").distinct()
    pushed = events.where(F.col("event") == "pushed").select(*Past._fields, "size", F.lit(True).alias("known"))
    says = F.col("payload").isNotNull() | F.col("payload_hash").isNotNull() | F.col("form").isNotNull()
    formed = F.when(F.col("form").isNotNull(), F.col("seq"))  # older rows may not say it: then it is as before
    last = (F.max_by("payload", "seq").alias("later"), F.max_by("form", formed).alias("later_form"))
    changed = (
        events.where((F.col("event") != "pushed") & says).groupBy("number").agg(*last, F.lit(True).alias("changed"))
    )
    jobs = numbers.join(pushed, "number", "left").join(changed, "number", "left")
    later, known = F.col("changed").isNotNull(), F.col("known").isNotNull()
    whole = F.when(later, F.col("later")).otherwise(F.col("payload"))
    form = F.coalesce("later_form", "form")
    wanted = known & F.array_contains("tags", which.tag) if which.tag else known
    lacks = whole.isNull() & (later | (F.col("size") > 0)) | _has_redacted(whole) | _has_redacted(F.col("custom"))
    lacks, wanted = F.coalesce(lacks, F.lit(False)), F.coalesce(wanted, F.lit(False))
    marks = {"good": wanted & ~lacks, "bare": wanted & lacks, "unknown": ~known}
    made = jobs.withColumns({"payload": whole, "form": form, **marks})
    return made.drop("changed", "later", "later_form", "size", "known")


def _has_redacted(text: Column) -> Column:
    return F.coalesce(F.contains(text, F.lit(_REDACTED)), F.lit(False))


@contextmanager
def find(spark: SparkSession, lake: Path, which: Filter, sample: int) -> Iterator[Found]:
    """What is found stays on the executors' disks until it was written. Raises HistoryLost."""
    done = read_done(lake)
    jobs = meant(history(spark, lake), which).persist(StorageLevel.DISK_ONLY)
    try:
        counts = jobs.agg(*(F.count_if(name).alias(name) for name in ("good", "unknown", "bare"))).head()
        good, unknown, bare = counts or (0, 0, 0)
        chosen = jobs.where("good").select(*Past._fields)
        first = [Past(*row) for row in chosen.orderBy("number").limit(sample).collect()]
        named = [row.jid for row in jobs.where("bare").orderBy("number").limit(NAMED if bare else 0).collect()]
        name, at = ("", 0.0) if done is None else (done.lake, done.at)
        yield Found(name, at, good, unknown, bare, named, first, chosen)
    finally:
        jobs.unpersist()


def frame(found: Found, run: str, to_queue: str) -> DataFrame:
    """Jobs for the sink: with the tries and the time that the first one was given, and its name."""
    number = F.col("number").cast("string")
    text = F.concat(F.lit(f"{run}\0{found.lake}\0"), number, F.lit("\0"), "jid")
    retries = F.greatest(F.lit(-1), F.least(F.col("retries"), F.lit(RETRIES_AT_MOST)))
    lease = F.least(F.coalesce("lease_s", F.lit(0.0)), F.lit(LEASE_AT_MOST))
    return found.jobs.orderBy("number").select(
        F.substring(F.sha2(text, 256), 1, 32).alias("jid"),
        F.lit(to_queue).alias("queue") if to_queue else F.col("queue"),
        "kind",
        F.col("payload").alias("args"),
        "form",
        "priority",
        F.coalesce(retries, F.lit(RETRIES)).cast("int").alias("retry"),
        lease.cast("int").alias("reserve_for"),
        F.col("custom").cast("string").alias("custom"),
        "tags",
        F.col("jid").alias("replayed_from"),
    )


def send(spark: SparkSession, jobs: DataFrame, where: Where, run: str) -> None:
    """By the sink: each job once under that run, whatever becomes of the tasks."""
    register(spark)
    options = {"host": where.host, "port": str(where.port), "socket": where.path, "password": where.password}
    jobs.write.format(FORMAT).options(run=run, **options).mode("append").save()
