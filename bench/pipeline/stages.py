"""The stages that are measured, each by Spark and by DuckDB over the same files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from crossdock.pipeline.delta import WRITING
from crossdock.pipeline.transforms.attempts import attempts
from crossdock.pipeline.transforms.bookings import bookings

#: What the pass over the statistics reads.
_STATS: Final = (
    "booked_day",
    "flush_epoch",
    "booked_queue",
    "kind",
    "booked_wait",
    "wait_s",
    "booked_run",
    "run_s",
    "booked_failures",
    "booked_failed",
    "booked_retries",
)

#: The same grouped pass as transforms/bookings.py.
_ONE_PASS: Final = """
    with booked as (
        select booked_day, flush_epoch, booked_queue, kind,
            case when booked_wait then 'wait' when booked_run then 'run' else 'count' end as event,
            case when booked_wait then wait_s when booked_run then run_s end as value,
            floor(value) as whole, booked_failures, booked_failed, booked_retries
        from read_parquet($files) where booked_day is not null
    )
    select booked_day, flush_epoch, booked_queue, kind, event,
        case when whole < 60 then whole
            when whole < 3600 then 59 + floor(whole / 60)
            when whole < 86400 then 115 + floor(whole / 900)
            when whole < 259200 then 187 + floor(whole / 3600)
            else 256 + floor(whole / 86400) end as fine,
        case when value > 0 then ceil(ln(value) / ln(1.04)) else -10000 end as log,
        count(value) as n, avg(value) as mean, var_pop(value) * count(value) as m2, max(value) as max,
        sum(booked_failures), sum(booked_failed), sum(booked_retries)
    from booked group by all
"""

_ATTEMPTS: Final = """
    copy (
        select date '1970-01-01' + floor("at" / 86400)::int as date, seq, flush_epoch, jid, number, attempt, queue,
            kind, origin, lease_via, via, worker, make_timestamp((leased_at * 1e6)::bigint) as leased_at,
            make_timestamp(("at" * 1e6)::bigint) as closed_at, outcome, state, wait_s, run_s, beats, lost, error_group,
            error_message
        from read_parquet({files}) where outcome is not null
    ) to '{folder}' (format parquet, compression zstd, partition_by (date), overwrite_or_ignore)
"""

#: As it would be if the rows that close an attempt did not say all about it. The hints are Spark's.
_JOINED: Final = """
    select /*+ SHUFFLE_HASH(l), SHUFFLE_HASH(p) */
        cast(floor(c."at" / 86400) as int) as day, c.seq, c.flush_epoch, c.jid, c.number, c.attempt, c.queue, c.kind,
        p.via as door_in, l.via as door_out, c.via as settled_by, c.worker, l."at" as leased_at, c."at" as closed_at,
        c.outcome, c.state, l.wait_s, c."at" - l."at" as run_s, c.error_group, c.error_message
    from {events} c
    join {events} l on l.event = 'leased' and l.number = c.number and l.attempt = c.attempt
    join {events} p on p.event = 'pushed' and p.number = c.number
    where c.outcome is not null
"""


def spark_joined(events: DataFrame, folder: Path) -> None:
    events.createOrReplaceTempView("events")
    joined = events.sparkSession.sql(_JOINED.replace('"', "`").format(events="events"))
    joined.write.partitionBy("day").mode("overwrite").parquet(str(folder))


def duck_joined(files: Sequence[str], folder: Path) -> None:
    chosen = _JOINED.format(events=f"read_parquet({_named(files)})")
    how = "format parquet, compression zstd, partition_by (day), overwrite_or_ignore"
    duckdb.execute(f"copy ({chosen}) to '{folder}' ({how})")


def spark_scan(events: DataFrame) -> None:
    _to_nobody(events.where(F.col("booked_day").isNotNull()).select(*_STATS))


def spark_stats(events: DataFrame) -> None:
    _to_nobody(bookings(events))


def spark_attempts(events: DataFrame, folder: Path) -> None:
    attempts(events).write.options(**WRITING).partitionBy("date").mode("overwrite").parquet(str(folder))


def duck_scan(files: Sequence[str]) -> None:
    columns = ", ".join(f"max({name})" for name in _STATS)
    duckdb.execute(f"select {columns} from read_parquet($files) where booked_day is not null", {"files": list(files)})


def duck_stats(files: Sequence[str]) -> int:
    return len(duckdb.execute(_ONE_PASS, {"files": list(files)}).fetchall())


def duck_attempts(files: Sequence[str], folder: Path) -> None:
    duckdb.execute(_ATTEMPTS.format(files=_named(files), folder=folder))


def _named(files: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{file}'" for file in files) + "]"


def _to_nobody(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()
