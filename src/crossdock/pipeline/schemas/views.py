"""Tables that are computed from the rollups, for the dates that changed."""

from typing import Final

import pyarrow as pa

from crossdock.pipeline.schemas.appended import FAILURES_DAY, HIST_DAY
from crossdock.pipeline.schemas.table_schema import (
    DATE,
    DAY,
    EPOCH,
    FLOAT,
    HOUR,
    INT,
    KIND,
    QUEUE,
    SERVER,
    TEXT,
    TIME,
    Column,
    TableSchema,
)

HOURLY: Final = TableSchema(
    "hourly",
    "Arrivals, departures and outcomes per hour and queue.",
    (
        DAY,
        SERVER,
        HOUR,
        EPOCH,
        QUEUE,
        ("arrived", INT, "jobs pushed, moved in, or put again after they had ended"),
        ("departed", INT, "jobs that succeeded, failed finally, moved on or were removed"),
        ("leased", INT, "leases that began"),
        ("succeeded", INT, "jobs that succeeded"),
        ("failed", INT, "failures, including those that are retried"),
        ("died", INT, "failures after which the job was not tried again"),
        ("expired", INT, "leases that expired and whose job is ready again"),
        ("depth_change", INT, "arrived - departed"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue"),
)

DEPTHS: Final = TableSchema(
    "depths",
    "Jobs in each queue at the end of the day, or so far.",
    (
        DAY,
        SERVER,
        EPOCH,
        QUEUE,
        ("depth", INT, "jobs in the queue, waiting or running"),
        ("oldest_since", TIME, "the oldest of them arrived in this hour or later, if jobs leave in order of arrival"),
    ),
    ("server", "date", "flush_epoch", "queue"),
)

FORECAST: Final = TableSchema(
    "forecast",
    "Depth and rates of each queue per hour, and when the queue will be empty at these rates.",
    (
        DAY,
        SERVER,
        HOUR,
        EPOCH,
        QUEUE,
        ("depth", INT, "jobs in the queue at the end of the hour, or so far"),
        ("observed_s", FLOAT, "seconds of the rates: this hour so far, and the one before if it has under 15 minutes"),
        ("arrival_rate", FLOAT, "arrivals per second"),
        ("service_rate", FLOAT, "departures per second"),
        ("empty_in_s", FLOAT, "seconds until the queue is empty at these rates; null: it grows or stands still"),
        ("drain_s", FLOAT, "seconds until it is empty if no more jobs arrive; null: no job departs"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue"),
)  # fmt: skip


def _spread(event: str, text: str) -> tuple[Column, ...]:
    return (
        (f"{event}_n", INT, f"values of {text}"),
        (f"{event}_mean", FLOAT, f"mean of {text}, in seconds"),
        (f"{event}_m2", FLOAT, "sum of squared distances from the mean"),
        (f"{event}_variance", FLOAT, "variance of a sample: m2 / (n - 1)"),
        (f"{event}_max", FLOAT, "largest value"),
        (f"{event}_p50", FLOAT, "median, within 2 %"),
        (f"{event}_p95", FLOAT, "95th percentile, within 2 %"),
        (f"{event}_p99", FLOAT, "99th percentile, within 2 %"),
    )


DAILY: Final = TableSchema(
    "daily",
    "Durations and outcomes per day, queue and kind.",
    (
        DAY,
        SERVER,
        EPOCH,
        QUEUE,
        KIND,
        *_spread("wait", "the time from ready to leased"),
        *_spread("run", "the time from leased to success"),
        *_spread("total", "the time from push to success"),
        ("pushed", INT, "jobs pushed"),
        ("attempts", INT, "leases that ended"),
        ("succeeded", INT, "jobs that succeeded"),
        ("failed_attempts", INT, "attempts that failed, were lost, expired or stalled"),
        ("died", INT, "jobs that failed and were not tried again"),
        ("retried", INT, "failures after which the job is tried again"),
        ("again", INT, "jobs that succeeded after an earlier attempt had failed"),
        ("job_success", FLOAT, "succeeded / (succeeded + died); null: no job ended"),
        ("attempt_success", FLOAT, "successful attempts / attempts"),
        ("busy_s", FLOAT, "run time of all attempts"),
        ("wasted_s", FLOAT, "run time of failed attempts"),
        ("cost", FLOAT, "busy_s at `pipeline.price_per_worker_hour`; null: there is no price"),
        ("booked_failures", INT, "failures as qless shows them, on the day the engine booked them"),
        ("booked_failed", INT, "failed jobs as qless shows them"),
        ("booked_retries", INT, "expired leases as qless shows them"),
    ),
    ("server", "date", "flush_epoch", "queue", "kind"),
)

HISTOGRAM: Final = TableSchema(
    "histogram",
    "Distribution of waits, runs and total times per day, queue and kind.",
    tuple(column for column in HIST_DAY.columns if column[0] not in ("failures", "failed", "retries")),
    HIST_DAY.key,
)

FAILURES: Final = TableSchema(
    "failures",
    "Failures per day, queue, kind and cause.",
    (
        *FAILURES_DAY.columns[:8],
        ("first", TIME, "time of the first"),
        ("last", TIME, "time of the last"),
        ("example_jid", TEXT, "id of the first job"),
        ("example_message", TEXT, "its message, up to 500 characters"),
    ),
    FAILURES_DAY.key,
)

WORKERS: Final = TableSchema(
    "workers",
    "Busy time and outcomes per worker and hour.",
    (
        ("date", DATE, "day of the hour"),
        SERVER,
        HOUR,
        ("worker", TEXT, "name of the worker"),
        ("protocol", TEXT, "protocol that leased the jobs"),
        ("busy_s", FLOAT, "seconds of attempts within the hour"),
        ("utilisation", FLOAT, "busy_s / 3600; over 1 for parallel jobs"),
        ("attempts", INT, "attempts that ended in the hour; the next three are parts of it"),
        ("succeeded", INT, "attempts that succeeded or advanced"),
        ("spent", INT, "attempts that failed, were lost, expired or stalled"),
        ("other", INT, "attempts that were returned, moved or removed"),
    ),
    ("server", "date", "hour", "worker", "protocol"),
)

FLOWS: Final = TableSchema(
    "flows",
    "Jobs that are connected by dependencies, batches and callbacks, with their critical path.",
    (
        ("date", DATE, "day on which its first job was pushed"),
        SERVER,
        ("name", TEXT, "its outermost batch; without one, id of its first job without dependencies, once it has run"),
        ("number", INT, "number of its first job, of those that have a batch or dependencies"),
        ("jid", TEXT, "id of that job"),
        ("groups", pa.list_(TEXT), "names of its batches"),
        ("jobs", INT, "jobs, including those that others only depend on; the sum of succeeded, failed and open"),
        ("links", INT, "dependencies, memberships in batches and callbacks; without removed dependencies"),
        ("depth", INT, "jobs on the longest chain"),
        ("succeeded", INT, "jobs whose last attempt succeeded"),
        ("failed", INT, "jobs whose last attempt failed and that are not tried again"),
        ("open", INT, "other jobs"),
        ("pushed_at", TIME, "when its first job was pushed"),
        ("closed_at", TIME, "end of the last attempt so far"),
        ("run_s", FLOAT, "run time of all attempts, in seconds"),
        ("critical_s", FLOAT, "run time on the longest path, in seconds: more workers do not shorten it"),
    ),
    ("server", "number"),
)

SLO: Final = TableSchema(
    "slo",
    "Objectives per day and queue: how many jobs were done in time, and how fast the error budget burned.",
    (
        DAY,
        SERVER,
        QUEUE,
        ("target", FLOAT, "share of jobs that the objective asks for, from `slo.<queue>.ratio`"),
        ("done_within_s", FLOAT, "seconds from push to success that the objective allows; null: not set"),
        ("done", INT, "jobs that succeeded, if the time of their push is known"),
        ("within", INT, "of these: in time, within 2 % of the limit"),
        ("died", INT, "jobs that failed and were not tried again; each counts as too late"),
        ("ratio", FLOAT, "within / (done + died); null: no job ended"),
        ("burn_rate", FLOAT, "(1 - ratio) / (1 - target): 1 uses up the error budget exactly; null: target is 1"),
        ("start_within_s", FLOAT, "seconds from ready to leased that the objective allows; null: not set"),
        ("started", INT, "leases that began"),
        ("started_within", INT, "of these: in time, within 2 % of the limit"),
        ("start_ratio", FLOAT, "started_within / started"),
        ("start_burn_rate", FLOAT, "(1 - start_ratio) / (1 - target)"),
    ),
    ("server", "date", "queue"),
)

CAPACITY: Final = TableSchema(
    "capacity",
    "Load of each queue in the busiest hour of the day, and the workers that it needs.",
    (
        DAY,
        SERVER,
        QUEUE,
        ("peak_hour", TIME, "start of the hour with the highest arrival rate, UTC"),
        ("arrival_rate", FLOAT, "jobs per second that arrived in that hour"),
        ("attempts_per_job", FLOAT, "attempts that ended on this day per job that ended, at least 1"),
        ("run_mean", FLOAT, "mean run time of all attempts of the day, in seconds"),
        ("run_scv", FLOAT, "variance / mean² of the successful runs of the day; 1: exponential, 0: all equal"),
        ("load", FLOAT, "arrival_rate * attempts_per_job * run_mean: busy workers on average"),
        ("target_wait_s", FLOAT, "mean wait to reach: `slo.<queue>.start_within`, else 10 seconds"),
        ("workers_needed", INT, "workers for that mean wait, one job at a time each; null: nothing arrived or ended"),
        ("workers_seen", INT, "workers of the server that were busy in that hour, in any queue"),
    ),
    ("server", "date", "queue"),
)

VIEWS: Final = (HOURLY, DEPTHS, FORECAST, DAILY, HISTOGRAM, FAILURES, WORKERS, SLO, CAPACITY, FLOWS)
