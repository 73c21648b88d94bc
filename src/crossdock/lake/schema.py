"""The events table: one row per transition of one job, flat and typed, and what each column means.

A segment is a Parquet file `events/date=D/<first>-<last>.parquet`; D, the UTC day of `at`, is in the path alone.
Columns are only ever added, at the end; a changed meaning is a new `LAKE_VERSION`, which older readers set aside.

* A row that has an `outcome` ends a lease and says all about it: attempts are a filter, never a join.
* What the engine booked for the statistics is in the `booked_` columns of the very row. A row books on one page only,
  (`booked_queue`, `booked_day`), and nothing where `booked_day` is null. Sums of these columns over the rows of the
  newest `flush_epoch` are the live statistics.
* Rows without a `number` are about no job: the server's starts, flushes, queues, groups, settings.
"""

from typing import Final

import pyarrow as pa

#: In the metadata of each segment; a reader sets aside what is newer.
LAKE_VERSION: Final = 1

#: The folder of a date, in Hive's manner, and how its name is read.
PARTITION: Final = "date"

#: `seq` of a row is its batch's number in the journal, shifted by this, and its own place among the batch's rows.
SEQ_SHIFT: Final = 22
#: Of a batch. More would take the numbers of the next one's: such a batch is refused, and the lake stops before it.
ROWS_AT_MOST: Final = 1 << SEQ_SHIFT


def _column(name: str, kind: pa.DataType, meaning: str, *, always: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not always, metadata={"meaning": meaning})


_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()

EVENTS: Final = pa.schema(
    [
        _column("seq", _I, "unique and ascending: the batch in the journal << 22, and the row in it", always=True),
        _column("flush_epoch", _I, "number of flushes before it; statistics restart with each flush", always=True),
        _column("at", _F, "seconds since 1970 by the server's clock, never decreasing; date in the path", always=True),
        _column("t", _F, "the same by the clock of the caller who made the change, where that one counts (qless)"),
        _column("event", _S, "the kind of transition: docs/reference/lake.md lists them", always=True),
        _column("state", _S, "the job's state after it; null: as it was"),
        _column("outcome", _S, "of a row that ends a lease: how; else null"),
        _column("why", _S, "of removed and readied rows: the reason. Of a setting, a throttle: its name"),
        _column("jid", _S, "the job's name; several jobs may have it one after the other"),
        _column("number", _I, "the job's number: unique, never used again"),
        _column("queue", _S, "where the job was when it happened"),
        _column("kind", _S, "the job's type or class"),
        _column("origin", _S, "the door it came in by"),
        _column("via", _S, "the door that made the change; empty for a timer"),
        _column("worker", _S, "who holds, or held, the lease"),
        _column("attempt", _I, "leases so far, this one included"),
        _column("priority", _F, "higher first"),
        _column("size", _I, "bytes of the payload"),
        _column("token", _I, "names the lease: the same from leased to outcome"),
        _column("lease_via", _S, "the door the lease went out by"),
        _column("leased_at", _F, "of a row with an outcome: `at` of the lease it ends"),
        _column("wait_s", _F, "seconds from ready to leased, as the engine booked them"),
        _column("run_s", _F, "seconds from leased to the outcome; booked where `booked_run`"),
        _column("beats", _I, "how often the lease was renewed by a heartbeat"),
        _column("booked_queue", _S, "the queue on whose page this row books"),
        _column("booked_day", _I, "and its day: UTC days since 1970, by `t` where that counts; null: books nothing"),
        _column("booked_wait", _B, "wait_s is booked"),
        _column("booked_run", _B, "run_s is booked"),
        _column("booked_failures", _I, "failures booked: 1 or null"),
        _column("booked_failed", _I, "failed jobs booked: 1, or -1 on the day of `failed_at`, or null"),
        _column("booked_retries", _I, "leases that ran out booked: 1 or null"),
        _column("due", _F, "wall time a waiting job is due, a dead one is purged"),
        _column("to_queue", _S, "the queue it went on to"),
        _column("failed_at", _F, "of a kept failure that is removed or put anew: when it failed, as booked"),
        _column("lost", _B, "of a failed row: nobody reported it, the lease ran out"),
        _column("error_group", _S, "Faktory's errtype, qless' group, or the message's first words; by `lake.redact`"),
        _column("error_message", _S, "of a failed row; by `lake.redact` and `lake.errors`"),
        _column("backtrace", _S, "of a failed row, a line each; by `lake.redact` and `lake.errors`"),
        _column("group_name", _S, "the group (Faktory's batch) it is a member of, or the row is about"),
        _column("callback_of", _S, "the group whose callback this job is"),
        _column("callback", _S, "complete or success: which one; of group-finished: which of the two was reached"),
        _column("parent_group", _S, "of group-opened: the group it is part of"),
        _column("needs", pa.list_(_I), "numbers of the jobs it waits for, as pushed or edited"),
        _column("tags", pa.list_(_S), "all it has, as text; of rows that set them"),
        _column("spawned_from", _S, "the recurrence or interval that made it"),
        _column("replayed_from", _S, "the jid of the job that it repeats"),
        _column("retries", _I, "of a pushed row: failures it may have; below 0: the first one ends it"),
        _column("lease_s", _F, "of a pushed row: the time a lease is to last, as its creator gave it"),
        _column("form", _S, "of a row with a payload: raw or json"),
        _column("payload", pa.binary(), "as pushed or put in place; by `lake.payloads` and `lake.redact`"),
        _column("payload_hash", _S, "SHA-256 of it as it came, in hex; where `lake.payloads` is hash"),
        _column("custom", pa.binary(), "a JSON object beside the payload (Faktory's custom); as payload"),
        _column("detail", _S, "of noted the text, of a setting its value, of group-opened the description"),
        _column("over", _B, "of a row about a job that had ended before: true. It was complete, failed or dead"),
    ]
)  # fmt: skip
