"""The columns of all tables and what they mean. This module needs no Spark.

Every table is partitioned by `date`. `attempts` and `links` have one row per event. The rollups are grouped by their
key columns and appended by each batch, so a key can have several rows: readers add them up. The views have one row per
key. docs/reference/tables.md is made from this module.
"""

from typing import Final, NamedTuple

import pyarrow as pa

_S, _I, _F, _B, _D = pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()
_INT32: Final = pa.int32()
_T: Final = pa.timestamp("us", "UTC")

Column = tuple[str, pa.DataType, str]


class TableSchema(NamedTuple):
    name: str
    meaning: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]  #: columns that identify a row; of a rollup, a row of one batch
    #: Two columns of job numbers. The log has the minimum of the first and the maximum of the second for each file, so
    #: that a search for jobs leaves out files.
    bounds: tuple[str, str] | None = None

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(name, kind, metadata={"meaning": text}) for name, kind, text in self.columns])

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]


_SERVER: Final = ("server", _S, "name of the server, from `server.name`")
_EPOCH: Final = ("flush_epoch", _I, "number of flushes before; statistics and depths restart with each flush")
_QUEUE: Final = ("queue", _S, "the job's queue when the event happened")
_KIND: Final = ("kind", _S, "the job's type or class")
_ORIGIN: Final = ("protocol", _S, "protocol that pushed the job")
_DAY: Final = ("date", _D, "UTC day by the server's clock")
_HOUR: Final = ("hour", _T, "start of the hour, UTC")

ATTEMPTS: Final = TableSchema(
    "attempts",
    "One row per lease that ended.",
    (
        ("date", _D, "day on which it ended"),
        _SERVER,
        ("seq", _I, "number of the event in the lake, unique per server"),
        _EPOCH,
        ("jid", _S, "the job's id as clients see it"),
        ("number", _I, "the job's number: unique per server, never reused"),
        ("attempt", _I, "attempt number, starting at 1"),
        _QUEUE,
        _KIND,
        ("protocol_in", _S, "protocol that pushed the job"),
        ("protocol_out", _S, "protocol that leased it"),
        ("settled_by", _S, "protocol that ended the lease; empty: a timer"),
        ("worker", _S, "worker that held the lease"),
        ("pushed_at", _T, "when the job was pushed"),
        ("leased_at", _T, "when the lease began"),
        ("closed_at", _T, "when the lease ended"),
        ("outcome", _S, "succeeded, failed, lost, expired, returned, stalled, advanced, moved, removed or surfaced"),
        ("state", _S, "the job's state afterwards; gone: it no longer exists"),
        ("wait_s", _F, "seconds from ready to leased"),
        ("run_s", _F, "seconds from leased to the end"),
        ("total_s", _F, "seconds from push to success; null for other outcomes"),
        ("beats", _I, "heartbeats that renewed the lease"),
        ("lost", _B, "the lease expired without a report"),
        ("error_group", _S, "error type, or the first words of the message"),
        ("error_message", _S, "message of the failure"),
    ),
    ("server", "seq"),
    ("number", "number"),
)

LINKS: Final = TableSchema(
    "links",
    "One row per event that names a dependency, a batch or a callback of a job.",
    (
        _DAY,
        _SERVER,
        ("seq", _I, "number of the event in the lake"),
        ("at", _T, "time of the event"),
        ("event", _S, "kind of event"),
        ("number", _I, "the job's number; null: the event is about a batch"),
        ("jid", _S, "the job's id"),
        _QUEUE,
        ("group_name", _S, "the batch of the job, or the batch that the event is about"),
        ("callback_of", _S, "the batch whose callback job this is"),
        ("parent_group", _S, "the parent batch"),
        ("needs", pa.list_(_I), "numbers of the jobs it depends on; negative: relative to its own number"),
        ("lowest", _I, "lowest job number in this row: its own or one that it depends on; null: no job"),
        ("highest", _I, "highest job number in this row"),
    ),
    ("server", "seq"),
    ("lowest", "highest"),
)

COUNTS_HOUR: Final = TableSchema(
    "counts_hour",
    "Events per hour and queue.",
    (
        _DAY,
        _SERVER,
        _HOUR,
        _EPOCH,
        _QUEUE,
        ("to_queue", _S, "the queue the job moved to"),
        _ORIGIN,
        ("event", _S, "kind of event"),
        ("state", _S, "the job's state afterwards; null: unchanged"),
        ("over", _B, "the job had already ended before the event"),
        ("n", _I, "events"),
        ("first_at", _F, "time of the first event, in seconds since 1970"),
        ("last_at", _F, "time of the last event"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue", "to_queue", "protocol", "event", "state", "over"),
)

COUNTS_DAY: Final = TableSchema(
    "counts_day",
    "Events per day, queue and kind, with outcomes and error groups.",
    (
        _DAY,
        _SERVER,
        _EPOCH,
        _QUEUE,
        _KIND,
        _ORIGIN,
        ("event", _S, "kind of event"),
        ("state", _S, "the job's state afterwards; null: unchanged"),
        ("outcome", _S, "how the lease ended; null: the event ended none"),
        ("lost", _B, "the lease expired without a report"),
        ("again", _B, "not the first attempt of the job"),
        ("over", _B, "the job had already ended before the event"),
        ("error_group", _S, "error type, or the first words of the message"),
        ("n", _I, "events"),
        ("run_s", _F, "run time of the leases that ended, in seconds"),
    ),
    (
        "server", "date", "flush_epoch", "queue", "kind", "protocol", "event", "state", "outcome", "lost", "again",
        "over", "error_group",
    ),
)  # fmt: skip

HIST_DAY: Final = TableSchema(
    "hist_day",
    "Distribution of waits, runs and total times per day, queue and kind, and the counts that qless shows.",
    (
        ("date", _D, "day on which the engine booked the value; of `total`: day of the success"),
        _SERVER,
        _EPOCH,
        _QUEUE,
        _KIND,
        ("what", _S, "wait, run, total (push to success), or count"),
        ("fine", _INT32, "bucket of qless' statistics; null for total and count"),
        ("log", _INT32, "bucket that grows by 4 %; null for count"),
        ("n", _I, "values"),
        ("mean", _F, "mean of the values, in seconds"),
        ("m2", _F, "sum of squared distances from the mean"),
        ("max", _F, "largest value"),
        ("failures", _I, "failures booked"),
        ("failed", _I, "failed jobs booked, minus those that left that state"),
        ("retries", _I, "expired leases booked"),
    ),
    ("server", "date", "flush_epoch", "queue", "kind", "what", "fine", "log"),
)

FAILURES_DAY: Final = TableSchema(
    "failures_day",
    "Failures per day, queue, kind and cause, with an example.",
    (
        _DAY,
        _SERVER,
        _QUEUE,
        _KIND,
        ("error_group", _S, "error type, or the first words of the message"),
        ("cause", _S, "the message with numbers and ids replaced by N, up to 200 characters"),
        ("n", _I, "failures"),
        ("deaths", _I, "failures after which the job was not tried again"),
        ("first_at", _F, "time of the first, in seconds since 1970"),
        ("last_at", _F, "time of the last"),
        ("seq", _I, "number of the first one's event; the next two columns are of it"),
        ("jid", _S, "the job's id"),
        ("message", _S, "its message, up to 500 characters"),
    ),
    ("server", "date", "queue", "kind", "error_group", "cause"),
)

WORK: Final = TableSchema(
    "work",
    "Busy time per worker and hour.",
    (
        ("date", _D, "day of the hour"),
        _SERVER,
        _HOUR,
        ("worker", _S, "name of the worker"),
        ("protocol", _S, "protocol that leased the jobs"),
        ("outcome", _S, "how the attempts ended"),
        ("busy_s", _F, "seconds of attempts within the hour"),
        ("n", _I, "attempts that ended in the hour"),
    ),
    ("server", "date", "hour", "worker", "protocol", "outcome"),
)

LAKES: Final = TableSchema(
    "lakes",
    "The lakes whose events are in the tables, one per server.",
    (
        ("date", _D, "day on which the list was last changed"),
        ("place", _I, "order in which they were added"),
        ("id", _S, "id of the lake's table"),
        ("server", _S, "name of its server"),
        ("location", _S, "folder or URL"),
    ),
    ("id",),
)

SKIPPED: Final = TableSchema(
    "skipped",
    "Damaged files of lakes that an operator has left out.",
    (
        ("date", _D, "date of the file"),
        ("lake", _S, "id of the lake's table"),
        ("path", _S, "relative to the lake"),
        ("rows", _I, "events in the file"),
        ("reason", _S, "why it could not be used"),
    ),
    ("lake", "path"),
)

#: Tables about the lakes, which are not made from events.
REGISTRY: Final = (LAKES, SKIPPED)
ROW_LEVEL: Final = (ATTEMPTS, LINKS)
ROLLUPS: Final = (COUNTS_HOUR, COUNTS_DAY, HIST_DAY, FAILURES_DAY, WORK)

HOURLY: Final = TableSchema(
    "hourly",
    "Arrivals, departures and outcomes per hour and queue.",
    (
        _DAY,
        _SERVER,
        _HOUR,
        _EPOCH,
        _QUEUE,
        ("arrived", _I, "jobs pushed, moved in, or put again after they had ended"),
        ("departed", _I, "jobs that succeeded, failed finally, moved on or were removed"),
        ("leased", _I, "leases that began"),
        ("succeeded", _I, "jobs that succeeded"),
        ("failed", _I, "failures, including those that are retried"),
        ("died", _I, "failures after which the job was not tried again"),
        ("expired", _I, "leases that expired and whose job is ready again"),
        ("depth_change", _I, "arrived - departed"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue"),
)

DEPTHS: Final = TableSchema(
    "depths",
    "Jobs in each queue at the end of the day, or so far.",
    (
        _DAY,
        _SERVER,
        _EPOCH,
        _QUEUE,
        ("depth", _I, "jobs in the queue, waiting or running"),
        ("oldest_since", _T, "the oldest of them arrived in this hour or later, if jobs leave in order of arrival"),
    ),
    ("server", "date", "flush_epoch", "queue"),
)

FORECAST: Final = TableSchema(
    "forecast",
    "Depth and rates of each queue per hour, and when the queue will be empty at these rates.",
    (
        _DAY,
        _SERVER,
        _HOUR,
        _EPOCH,
        _QUEUE,
        ("depth", _I, "jobs in the queue at the end of the hour, or so far"),
        ("observed_s", _F, "seconds of the rates: this hour so far, and the one before if it has under 15 minutes"),
        ("arrival_rate", _F, "arrivals per second"),
        ("service_rate", _F, "departures per second"),
        ("empty_in_s", _F, "seconds until the queue is empty at these rates; null: it grows or stands still"),
        ("drain_s", _F, "seconds until it is empty if no more jobs arrive; null: no job departs"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue"),
)  # fmt: skip


def _spread(event: str, text: str) -> tuple[Column, ...]:
    return (
        (f"{event}_n", _I, f"values of {text}"),
        (f"{event}_mean", _F, f"mean of {text}, in seconds"),
        (f"{event}_m2", _F, "sum of squared distances from the mean"),
        (f"{event}_variance", _F, "variance of a sample: m2 / (n - 1)"),
        (f"{event}_max", _F, "largest value"),
        (f"{event}_p50", _F, "median, within 2 %"),
        (f"{event}_p95", _F, "95th percentile, within 2 %"),
        (f"{event}_p99", _F, "99th percentile, within 2 %"),
    )


DAILY: Final = TableSchema(
    "daily",
    "Durations and outcomes per day, queue and kind.",
    (
        _DAY,
        _SERVER,
        _EPOCH,
        _QUEUE,
        _KIND,
        *_spread("wait", "the time from ready to leased"),
        *_spread("run", "the time from leased to success"),
        *_spread("total", "the time from push to success"),
        ("pushed", _I, "jobs pushed"),
        ("attempts", _I, "leases that ended"),
        ("succeeded", _I, "jobs that succeeded"),
        ("failed_attempts", _I, "attempts that failed, were lost, expired or stalled"),
        ("died", _I, "jobs that failed and were not tried again"),
        ("retried", _I, "failures after which the job is tried again"),
        ("again", _I, "jobs that succeeded after an earlier attempt had failed"),
        ("job_success", _F, "succeeded / (succeeded + died); null: no job ended"),
        ("attempt_success", _F, "successful attempts / attempts"),
        ("busy_s", _F, "run time of all attempts"),
        ("wasted_s", _F, "run time of failed attempts"),
        ("cost", _F, "busy_s at `pipeline.price_per_worker_hour`; null: there is no price"),
        ("booked_failures", _I, "failures as qless shows them, on the day the engine booked them"),
        ("booked_failed", _I, "failed jobs as qless shows them"),
        ("booked_retries", _I, "expired leases as qless shows them"),
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
        ("first", _T, "time of the first"),
        ("last", _T, "time of the last"),
        ("example_jid", _S, "id of the first job"),
        ("example_message", _S, "its message, up to 500 characters"),
    ),
    FAILURES_DAY.key,
)

WORKERS: Final = TableSchema(
    "workers",
    "Busy time and outcomes per worker and hour.",
    (
        ("date", _D, "day of the hour"),
        _SERVER,
        _HOUR,
        ("worker", _S, "name of the worker"),
        ("protocol", _S, "protocol that leased the jobs"),
        ("busy_s", _F, "seconds of attempts within the hour"),
        ("utilisation", _F, "busy_s / 3600; over 1 for parallel jobs"),
        ("attempts", _I, "attempts that ended in the hour; the next three are parts of it"),
        ("succeeded", _I, "attempts that succeeded or advanced"),
        ("spent", _I, "attempts that failed, were lost, expired or stalled"),
        ("other", _I, "attempts that were returned, moved or removed"),
    ),
    ("server", "date", "hour", "worker", "protocol"),
)

FLOWS: Final = TableSchema(
    "flows",
    "Jobs that are connected by dependencies, batches and callbacks, with their critical path.",
    (
        ("date", _D, "day on which its first job was pushed"),
        _SERVER,
        ("name", _S, "its outermost batch; without one, id of its first job without dependencies, once it has run"),
        ("number", _I, "number of its first job, of those that have a batch or dependencies"),
        ("jid", _S, "id of that job"),
        ("groups", pa.list_(_S), "names of its batches"),
        ("jobs", _I, "jobs, including those that others only depend on; the sum of succeeded, failed and open"),
        ("links", _I, "dependencies, memberships in batches and callbacks; without removed dependencies"),
        ("depth", _I, "jobs on the longest chain"),
        ("succeeded", _I, "jobs whose last attempt succeeded"),
        ("failed", _I, "jobs whose last attempt failed and that are not tried again"),
        ("open", _I, "other jobs"),
        ("pushed_at", _T, "when its first job was pushed"),
        ("closed_at", _T, "end of the last attempt so far"),
        ("run_s", _F, "run time of all attempts, in seconds"),
        ("critical_s", _F, "run time on the longest path, in seconds: more workers do not shorten it"),
    ),
    ("server", "number"),
)

SLO: Final = TableSchema(
    "slo",
    "Objectives per day and queue: how many jobs were done in time, and how fast the error budget burned.",
    (
        _DAY,
        _SERVER,
        _QUEUE,
        ("target", _F, "share of jobs that the objective asks for, from `slo.<queue>.ratio`"),
        ("done_within_s", _F, "seconds from push to success that the objective allows; null: not set"),
        ("done", _I, "jobs that succeeded, if the time of their push is known"),
        ("within", _I, "of these: in time, within 2 % of the limit"),
        ("died", _I, "jobs that failed and were not tried again; each counts as too late"),
        ("ratio", _F, "within / (done + died); null: no job ended"),
        ("burn_rate", _F, "(1 - ratio) / (1 - target): 1 uses up the error budget exactly; null: target is 1"),
        ("start_within_s", _F, "seconds from ready to leased that the objective allows; null: not set"),
        ("started", _I, "leases that began"),
        ("started_within", _I, "of these: in time, within 2 % of the limit"),
        ("start_ratio", _F, "started_within / started"),
        ("start_burn_rate", _F, "(1 - start_ratio) / (1 - target)"),
    ),
    ("server", "date", "queue"),
)

CAPACITY: Final = TableSchema(
    "capacity",
    "Load of each queue in the busiest hour of the day, and the workers that it needs.",
    (
        _DAY,
        _SERVER,
        _QUEUE,
        ("peak_hour", _T, "start of the hour with the highest arrival rate, UTC"),
        ("arrival_rate", _F, "jobs per second that arrived in that hour"),
        ("attempts_per_job", _F, "attempts that ended on this day per job that ended, at least 1"),
        ("run_mean", _F, "mean run time of all attempts of the day, in seconds"),
        ("run_scv", _F, "variance / mean² of the successful runs of the day; 1: exponential, 0: all equal"),
        ("load", _F, "arrival_rate * attempts_per_job * run_mean: busy workers on average"),
        ("target_wait_s", _F, "mean wait to reach: `slo.<queue>.start_within`, else 10 seconds"),
        ("workers_needed", _I, "workers for that mean wait, one job at a time each; null: nothing arrived or ended"),
        ("workers_seen", _I, "workers of the server that were busy in that hour, in any queue"),
    ),
    ("server", "date", "queue"),
)

VIEWS: Final = (HOURLY, DEPTHS, FORECAST, DAILY, HISTOGRAM, FAILURES, WORKERS, SLO, CAPACITY, FLOWS)
