"""The queries of the views. `{dates}` stands for a condition on the column `date`."""

from typing import Final

from crossdock.pipeline.schemas.appended import COUNTS_DAY, COUNTS_HOUR, FAILURES_DAY, HIST_DAY, WORK
from crossdock.pipeline.schemas.table_schema import TableSchema
from crossdock.pipeline.schemas.views import DAILY, FAILURES, HISTOGRAM, HOURLY, WORKERS
from crossdock.pipeline.transforms.buckets import GAMMA, NOTHING

_ENDED: Final = "('complete', 'failed', 'dead', 'gone')"
_SPENT: Final = "('failed', 'lost', 'expired', 'stalled')"
_SUCCESS: Final = "('succeeded', 'advanced')"

#: A job is in a queue from its push, or its arrival from another queue, until it succeeds, fails finally, is moved or
#: removed. A job that had already ended (`over`) left before: removing it is no departure, and putting it again is an
#: arrival. A job that Resqu puts on a queue or reschedules departs if that is another queue.
_HOURLY: Final = f"""
WITH counted AS (
    SELECT *, event IN ('put-on-queue', 'rescheduled') AND to_queue IS NOT NULL AND to_queue <> queue AS elsewhere
    FROM counts_hour WHERE {{dates}} AND queue IS NOT NULL
), moves AS (
    SELECT * FROM counted
    WHERE elsewhere OR (event = 'readied' AND over) OR event IN
        ('pushed', 'leased', 'succeeded', 'failed', 'lease-expired', 'buried', 'advanced', 'moved', 'removed',
            'revived')
), sides AS (
    SELECT date, server, hour, flush_epoch, queue,
        CASE WHEN event = 'pushed' OR (event = 'readied' AND over) THEN n ELSE 0 END AS arrived,
        CASE WHEN event IN ('succeeded', 'advanced') OR elsewhere
            OR (event = 'failed' AND (to_queue IS NOT NULL OR state IN {_ENDED}))
            OR (event IN ('buried', 'moved', 'removed') AND NOT over) THEN n ELSE 0 END AS departed,
        CASE WHEN event = 'leased' THEN n ELSE 0 END AS leased,
        CASE WHEN event = 'succeeded' THEN n ELSE 0 END AS succeeded,
        CASE WHEN event = 'failed' THEN n ELSE 0 END AS failed,
        CASE WHEN (event = 'failed' AND state IN {_ENDED}) OR event = 'buried' THEN n ELSE 0 END AS died,
        CASE WHEN event = 'lease-expired' THEN n ELSE 0 END AS expired
    FROM moves
    UNION ALL
    SELECT date, server, hour, flush_epoch, to_queue,
        CASE WHEN NOT over OR state IS NOT NULL THEN n ELSE 0 END, 0, 0, 0, 0, 0, 0
    FROM moves WHERE to_queue IS NOT NULL
)
SELECT date, server, hour, flush_epoch, queue, sum(arrived) AS arrived, sum(departed) AS departed,
    sum(leased) AS leased, sum(succeeded) AS succeeded, sum(failed) AS failed, sum(died) AS died,
    sum(expired) AS expired, sum(arrived) - sum(departed) AS depth_change
FROM sides GROUP BY date, server, hour, flush_epoch, queue
"""

_HIST_KEY: Final = "date, server, flush_epoch, queue, kind, what, fine, log"

#: Moments are merged by Chan's formula: sums of squares lose all digits where the mean is large and the spread small.
MERGED_HIST: Final = f"""
means AS (
    SELECT {_HIST_KEY}, n, mean, m2, max, failures, failed, retries,
        sum(n * mean) OVER page / nullif(sum(n) OVER page, 0) AS middle
    FROM hist_day WHERE {{dates}} WINDOW page AS (PARTITION BY {_HIST_KEY})
), hist AS (
    SELECT {_HIST_KEY}, sum(n) AS n, max(middle) AS mean,
        sum(m2) + sum(n * (mean - middle) * (mean - middle)) AS m2, max(max) AS max,
        sum(failures) AS failures, sum(failed) AS failed, sum(retries) AS retries
    FROM means GROUP BY {_HIST_KEY}
)"""

_HISTOGRAM: Final = f"WITH {MERGED_HIST} SELECT * FROM hist WHERE what <> 'count'"

_KEY: Final = "date, server, flush_epoch, queue, kind"


def _value(bucket: str) -> str:
    """A value within 1.97 % of every value in the bucket."""
    return f"CASE WHEN {bucket} = {NOTHING} THEN 0.0 ELSE power({GAMMA}, {bucket}) * {2 / (GAMMA + 1)!r} END"


def _of(what: str) -> str:
    here = f"what = '{what}'"
    mean = f"max(CASE WHEN {here} THEN middle END)"
    columns = [
        f"sum(CASE WHEN {here} THEN n ELSE 0 END) AS {what}_n",
        f"{mean} AS {what}_mean",
        f"sum(CASE WHEN {here} THEN m2 + n * (mean - middle) * (mean - middle) END) AS {what}_m2",
        f"max(CASE WHEN {here} THEN max END) AS {what}_max",
    ]
    for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        columns.append(f"min(CASE WHEN {here} AND upto >= ceil(whole * {share}) THEN log END) AS {what}_{name}")
    return ",\n        ".join(columns)


def _shown(what: str) -> str:
    percentiles = ", ".join(f"least({_value(f'{what}_{p}')}, {what}_max) AS {what}_{p}" for p in ("p50", "p95", "p99"))
    return (
        f"coalesce({what}_n, 0) AS {what}_n, {what}_mean, {what}_m2, "
        f"CASE WHEN {what}_n > 1 THEN {what}_m2 / ({what}_n - 1) WHEN {what}_n = 1 THEN 0.0 END AS {what}_variance, "
        f"{what}_max, {percentiles}"
    )


_DAILY: Final = f"""
WITH {MERGED_HIST}, ranked AS (
    SELECT *, sum(n) OVER (PARTITION BY {_KEY}, what ORDER BY log) AS upto,
        sum(n) OVER (PARTITION BY {_KEY}, what) AS whole,
        sum(n * mean) OVER (PARTITION BY {_KEY}, what)
            / nullif(sum(n) OVER (PARTITION BY {_KEY}, what), 0) AS middle
    FROM hist
), times AS (
    SELECT {_KEY},
        {_of("wait")},
        {_of("run")},
        {_of("total")},
        sum(failures) AS booked_failures, sum(failed) AS booked_failed, sum(retries) AS booked_retries
    FROM ranked GROUP BY {_KEY}
), counts AS (
    SELECT {_KEY},
        sum(CASE WHEN event = 'pushed' THEN n ELSE 0 END) AS pushed,
        sum(CASE WHEN outcome IS NOT NULL THEN n ELSE 0 END) AS attempts,
        sum(CASE WHEN event = 'succeeded' THEN n ELSE 0 END) AS succeeded,
        sum(CASE WHEN outcome IN {_SUCCESS} THEN n ELSE 0 END) AS successes,
        sum(CASE WHEN outcome IN {_SPENT} THEN n ELSE 0 END) AS failed_attempts,
        sum(CASE WHEN (event = 'failed' AND state IN {_ENDED}) OR event = 'buried' THEN n ELSE 0 END) AS died,
        sum(CASE WHEN (event = 'failed' AND state NOT IN {_ENDED}) OR event = 'lease-expired' THEN n ELSE 0 END)
            AS retried,
        sum(CASE WHEN event = 'succeeded' AND again THEN n ELSE 0 END) AS again,
        sum(run_s) AS busy_s,
        sum(CASE WHEN outcome IN {_SPENT} THEN run_s ELSE 0.0 END) AS wasted_s
    FROM counts_day WHERE {{dates}} GROUP BY {_KEY}
), keys AS (SELECT {_KEY} FROM times UNION SELECT {_KEY} FROM counts)
SELECT keys.date, keys.server, keys.flush_epoch, keys.queue, keys.kind,
    {_shown("wait")},
    {_shown("run")},
    {_shown("total")},
    coalesce(pushed, 0) AS pushed, coalesce(attempts, 0) AS attempts, coalesce(succeeded, 0) AS succeeded,
    coalesce(failed_attempts, 0) AS failed_attempts, coalesce(died, 0) AS died, coalesce(retried, 0) AS retried,
    coalesce(again, 0) AS again,
    CAST(succeeded AS DOUBLE) / nullif(succeeded + died, 0) AS job_success,
    CAST(successes AS DOUBLE) / nullif(attempts, 0) AS attempt_success,
    coalesce(busy_s, 0.0) AS busy_s, coalesce(wasted_s, 0.0) AS wasted_s,
    coalesce(busy_s, 0.0) * {{price}} / 3600 AS cost,
    coalesce(booked_failures, 0) AS booked_failures, coalesce(booked_failed, 0) AS booked_failed,
    coalesce(booked_retries, 0) AS booked_retries
FROM keys
LEFT JOIN times ON {" AND ".join(f"(keys.{name} IS NOT DISTINCT FROM times.{name})" for name in _KEY.split(", "))}
LEFT JOIN counts ON {" AND ".join(f"(keys.{name} IS NOT DISTINCT FROM counts.{name})" for name in _KEY.split(", "))}
"""

_FAILURES: Final = """
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY date, server, queue, kind, error_group, cause ORDER BY seq) AS place
    FROM failures_day WHERE {dates}
)
SELECT date, server, queue, kind, error_group, cause, sum(n) AS n, sum(deaths) AS deaths,
    CAST(to_timestamp_micros(CAST(min(first_at) * 1000000 AS BIGINT)) AS TIMESTAMP) AS first,
    CAST(to_timestamp_micros(CAST(max(last_at) * 1000000 AS BIGINT)) AS TIMESTAMP) AS last,
    max(CASE WHEN place = 1 THEN jid END) AS example_jid, max(CASE WHEN place = 1 THEN message END) AS example_message
FROM ranked GROUP BY date, server, queue, kind, error_group, cause
"""

_WORKERS: Final = f"""
SELECT date, server, hour, worker, protocol, sum(busy_s) AS busy_s, sum(busy_s) / 3600 AS utilisation,
    sum(n) AS attempts, sum(CASE WHEN outcome IN {_SUCCESS} THEN n ELSE 0 END) AS succeeded,
    sum(CASE WHEN outcome IN {_SPENT} THEN n ELSE 0 END) AS spent,
    sum(CASE WHEN outcome IN {_SUCCESS} OR outcome IN {_SPENT} THEN 0 ELSE n END) AS other
FROM work WHERE {{dates}} GROUP BY date, server, hour, worker, protocol
"""

#: Each view with the rollups that its query reads.
QUERIES: Final[dict[TableSchema, tuple[str, tuple[TableSchema, ...]]]] = {
    HOURLY: (_HOURLY, (COUNTS_HOUR,)),
    DAILY: (_DAILY, (HIST_DAY, COUNTS_DAY)),
    HISTOGRAM: (_HISTOGRAM, (HIST_DAY,)),
    FAILURES: (_FAILURES, (FAILURES_DAY,)),
    WORKERS: (_WORKERS, (WORK,)),
}
