"""Tables that batches append to: the row level and the rollups, and the tables about the lakes."""

from typing import Final

import pyarrow as pa

from crossdock.pipeline.schemas.table_schema import (
    BOOL,
    DATE,
    DAY,
    EPOCH,
    FLOAT,
    HOUR,
    INT,
    INT32,
    KIND,
    ORIGIN,
    QUEUE,
    SERVER,
    TEXT,
    TIME,
    TableSchema,
)

ATTEMPTS: Final = TableSchema(
    "attempts",
    "One row per lease that ended.",
    (
        ("date", DATE, "day on which it ended"),
        SERVER,
        ("seq", INT, "number of the event in the lake, unique per server"),
        EPOCH,
        ("jid", TEXT, "the job's id as clients see it"),
        ("number", INT, "the job's number: unique per server, never reused"),
        ("attempt", INT, "attempt number, starting at 1"),
        QUEUE,
        KIND,
        ("protocol_in", TEXT, "protocol that pushed the job"),
        ("protocol_out", TEXT, "protocol that leased it"),
        ("settled_by", TEXT, "protocol that ended the lease; empty: a timer"),
        ("worker", TEXT, "worker that held the lease"),
        ("pushed_at", TIME, "when the job was pushed"),
        ("leased_at", TIME, "when the lease began"),
        ("closed_at", TIME, "when the lease ended"),
        (
            "outcome",
            TEXT,
            "succeeded, failed, lost, expired, returned, snoozed, stalled, advanced, moved, removed or surfaced",
        ),
        ("state", TEXT, "the job's state afterwards; gone: it no longer exists"),
        ("wait_s", FLOAT, "seconds from ready to leased"),
        ("run_s", FLOAT, "seconds from leased to the end"),
        ("total_s", FLOAT, "seconds from push to success; null for other outcomes"),
        ("beats", INT, "heartbeats that renewed the lease"),
        ("lost", BOOL, "the lease expired without a report"),
        ("error_group", TEXT, "error type, or the first words of the message"),
        ("error_message", TEXT, "message of the failure"),
    ),
    ("server", "seq"),
    ("number", "number"),
)

LINKS: Final = TableSchema(
    "links",
    "One row per event that names a dependency, a batch or a callback of a job.",
    (
        DAY,
        SERVER,
        ("seq", INT, "number of the event in the lake"),
        ("at", TIME, "time of the event"),
        ("event", TEXT, "kind of event"),
        ("number", INT, "the job's number; null: the event is about a batch"),
        ("jid", TEXT, "the job's id"),
        QUEUE,
        ("group_name", TEXT, "the batch of the job, or the batch that the event is about"),
        ("callback_of", TEXT, "the batch whose callback job this is"),
        ("parent_group", TEXT, "the parent batch"),
        ("needs", pa.list_(INT), "numbers of the jobs it depends on; negative: relative to its own number"),
        ("lowest", INT, "lowest job number in this row: its own or one that it depends on; null: no job"),
        ("highest", INT, "highest job number in this row"),
    ),
    ("server", "seq"),
    ("lowest", "highest"),
)

COUNTS_HOUR: Final = TableSchema(
    "counts_hour",
    "Events per hour and queue.",
    (
        DAY,
        SERVER,
        HOUR,
        EPOCH,
        QUEUE,
        ("to_queue", TEXT, "the queue the job moved to"),
        ORIGIN,
        ("event", TEXT, "kind of event"),
        ("state", TEXT, "the job's state afterwards; null: unchanged"),
        ("over", BOOL, "the job had already ended before the event"),
        ("n", INT, "events"),
        ("first_at", FLOAT, "time of the first event, in seconds since 1970"),
        ("last_at", FLOAT, "time of the last event"),
    ),
    ("server", "date", "hour", "flush_epoch", "queue", "to_queue", "protocol", "event", "state", "over"),
)

COUNTS_DAY: Final = TableSchema(
    "counts_day",
    "Events per day, queue and kind, with outcomes and error groups.",
    (
        DAY,
        SERVER,
        EPOCH,
        QUEUE,
        KIND,
        ORIGIN,
        ("event", TEXT, "kind of event"),
        ("state", TEXT, "the job's state afterwards; null: unchanged"),
        ("outcome", TEXT, "how the lease ended; null: the event ended none"),
        ("lost", BOOL, "the lease expired without a report"),
        ("again", BOOL, "not the first attempt of the job"),
        ("over", BOOL, "the job had already ended before the event"),
        ("error_group", TEXT, "error type, or the first words of the message"),
        ("n", INT, "events"),
        ("run_s", FLOAT, "run time of the leases that ended, in seconds"),
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
        ("date", DATE, "day on which the engine booked the value; of `total`: day of the success"),
        SERVER,
        EPOCH,
        QUEUE,
        KIND,
        ("what", TEXT, "wait, run, total (push to success), or count"),
        ("fine", INT32, "bucket of qless' statistics; null for total and count"),
        ("log", INT32, "bucket that grows by 4 %; null for count"),
        ("n", INT, "values"),
        ("mean", FLOAT, "mean of the values, in seconds"),
        ("m2", FLOAT, "sum of squared distances from the mean"),
        ("max", FLOAT, "largest value"),
        ("failures", INT, "failures booked"),
        ("failed", INT, "failed jobs booked, minus those that left that state"),
        ("retries", INT, "expired leases booked"),
    ),
    ("server", "date", "flush_epoch", "queue", "kind", "what", "fine", "log"),
)

FAILURES_DAY: Final = TableSchema(
    "failures_day",
    "Failures per day, queue, kind and cause, with an example.",
    (
        DAY,
        SERVER,
        QUEUE,
        KIND,
        ("error_group", TEXT, "error type, or the first words of the message"),
        ("cause", TEXT, "the message with numbers and ids replaced by N, up to 200 characters"),
        ("n", INT, "failures"),
        ("deaths", INT, "failures after which the job was not tried again"),
        ("first_at", FLOAT, "time of the first, in seconds since 1970"),
        ("last_at", FLOAT, "time of the last"),
        ("seq", INT, "number of the first one's event; the next two columns are of it"),
        ("jid", TEXT, "the job's id"),
        ("message", TEXT, "its message, up to 500 characters"),
    ),
    ("server", "date", "queue", "kind", "error_group", "cause"),
)

WORK: Final = TableSchema(
    "work",
    "Busy time per worker and hour.",
    (
        ("date", DATE, "day of the hour"),
        SERVER,
        HOUR,
        ("worker", TEXT, "name of the worker"),
        ("protocol", TEXT, "protocol that leased the jobs"),
        ("outcome", TEXT, "how the attempts ended"),
        ("busy_s", FLOAT, "seconds of attempts within the hour"),
        ("n", INT, "attempts that ended in the hour"),
    ),
    ("server", "date", "hour", "worker", "protocol", "outcome"),
)

LAKES: Final = TableSchema(
    "lakes",
    "The lakes whose events are in the tables, one per server.",
    (
        ("date", DATE, "day on which the list was last changed"),
        ("place", INT, "order in which they were added"),
        ("id", TEXT, "id of the lake's table"),
        ("server", TEXT, "name of its server"),
        ("location", TEXT, "folder or URL"),
    ),
    ("id",),
)

SKIPPED: Final = TableSchema(
    "skipped",
    "Damaged files of lakes that an operator has left out.",
    (
        ("date", DATE, "date of the file"),
        ("lake", TEXT, "id of the lake's table"),
        ("path", TEXT, "relative to the lake"),
        ("rows", INT, "events in the file"),
        ("reason", TEXT, "why it could not be used"),
    ),
    ("lake", "path"),
)

#: Tables about the lakes, which are not made from events.
REGISTRY: Final = (LAKES, SKIPPED)
ROW_LEVEL: Final = (ATTEMPTS, LINKS)
ROLLUPS: Final = (COUNTS_HOUR, COUNTS_DAY, HIST_DAY, FAILURES_DAY, WORK)
