"""The events table: one row per transition of one job, flat and typed, and what each column means.

A segment is a Parquet file `date=D/<first>-<last>-<random>.parquet`; D, the UTC day of `at`, is in the path alone.
Columns are only added, at the end. A changed meaning needs a new `LAKE_VERSION`, which older readers reject.

* A row with an `outcome` ends a lease and contains all its data: attempts are a filter, not a join.
* The `booked_` columns contain what the engine booked for the statistics. A row books on one page (`booked_queue`,
  `booked_day`), or nothing if `booked_day` is null. The sums of these columns over the rows of the newest
  `flush_epoch` are the live statistics.
* Rows without a `number` do not concern a job: server starts, flushes, queues, groups, settings, operators' actions.
"""

from typing import Final

import pyarrow as pa

#: In the metadata of each segment. Readers reject newer versions.
LAKE_VERSION: Final = 1

#: The partition column: folders are named `date=...`, as in Hive.
PARTITION: Final = "date"

#: `seq` of a row: the number of its journal entry, shifted left by this, plus the row's index in the entry.
SEQ_SHIFT: Final = 22
#: Rows of one entry. More would need numbers of the next entry, so the lake refuses such an entry and stops.
ROWS_AT_MOST: Final = 1 << SEQ_SHIFT


def _column(name: str, kind: pa.DataType, meaning: str, *, always: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=not always, metadata={"meaning": meaning})


_S, _I, _F, _B = pa.string(), pa.int64(), pa.float64(), pa.bool_()

EVENTS: Final = pa.schema(
    [
        _column("seq", _I, "unique and ascending: journal entry << 22, plus the row's index in it", always=True),
        _column("flush_epoch", _I, "number of flushes so far; statistics restart with each flush", always=True),
        _column("at", _F, "seconds since 1970 by the server's clock, never decreasing; date in the path", always=True),
        _column("t", _F, "time of the change by the client's clock, if the protocol uses that clock (qless)"),
        _column("event", _S, "kind of transition: docs/reference/lake.md lists them", always=True),
        _column("state", _S, "the job's state after the event; null: unchanged"),
        _column("outcome", _S, "how the lease ended, if this row ends one; else null"),
        _column("why", _S, "reason of removed, readied, queue-paused; name of a setting or throttle; verb of audited"),
        _column("jid", _S, "the job's id as clients see it; may be reused after the job has ended"),
        _column("number", _I, "the job's number: unique, never reused"),
        _column("queue", _S, "the job's queue when the event happened"),
        _column("kind", _S, "the job's type or class"),
        _column("origin", _S, "protocol that pushed the job"),
        _column("via", _S, "protocol of the request that caused the event; empty: a timer"),
        _column("worker", _S, "the worker that holds, or held, the lease; of Workq and Masenko the connection"),
        _column("attempt", _I, "number of leases so far, including this one"),
        _column("priority", _F, "higher first"),
        _column("size", _I, "bytes of the payload"),
        _column("token", _I, "identifies the lease, from leased to outcome"),
        _column("lease_via", _S, "protocol that leased the job"),
        _column("leased_at", _F, "rows with an outcome: `at` of the lease"),
        _column("wait_s", _F, "seconds from ready to leased, as the engine booked them"),
        _column("run_s", _F, "seconds from leased to the outcome; booked where `booked_run`"),
        _column("beats", _I, "number of heartbeats that renewed the lease"),
        _column("booked_queue", _S, "queue of the statistics page this row books on"),
        _column("booked_day", _I, "day of that page: UTC days since 1970, by `t` if set; null: books nothing"),
        _column("booked_wait", _B, "wait_s is booked"),
        _column("booked_run", _B, "run_s is booked"),
        _column("booked_failures", _I, "failures booked: 1 or null"),
        _column("booked_failed", _I, "failed jobs booked: 1, or -1 on the day of `failed_at`, or null"),
        _column("booked_retries", _I, "expired leases booked: 1 or null"),
        _column("due", _F, "time when a waiting job is due or a dead job is purged"),
        _column("to_queue", _S, "the queue the job moved to"),
        _column("failed_at", _F, "of a failed job that is removed or put again: when it failed, as booked"),
        _column("lost", _B, "failed: the lease expired without a report"),
        _column("error_group", _S, "Faktory's errtype, qless' group, or the message's first words; see `lake.redact`"),
        _column("error_message", _S, "failed; subject to `lake.redact` and `lake.errors`"),
        _column("backtrace", _S, "failed, one frame per line; subject to `lake.redact` and `lake.errors`"),
        _column("group_name", _S, "the batch of the job, or the batch that the event is about"),
        _column("callback_of", _S, "the batch whose callback job this is"),
        _column("callback", _S, "complete or success: which callback; of batch-finished: which was reached"),
        _column("parent_group", _S, "batch-opened: the parent batch"),
        _column("needs", pa.list_(_I), "numbers of the jobs it depends on, as pushed or edited"),
        _column("tags", pa.list_(_S), "all tags of the job, as text; on rows that set them"),
        _column("spawned_from", _S, "the schedule that created the job"),
        _column("replayed_from", _S, "jid of the job that this job replays"),
        _column("retries", _I, "pushed: failures allowed; negative: the first failure is final"),
        _column("lease_s", _F, "pushed: lease duration, as given by the client"),
        _column("form", _S, "rows with a payload: raw or json"),
        _column("payload", pa.binary(), "as pushed or replaced; subject to `lake.payloads` and `lake.redact`"),
        _column("payload_hash", _S, "SHA-256 of the original payload, in hex; if `lake.payloads` is hash"),
        _column("custom", pa.binary(), "JSON object of Faktory's `custom`; treated like payload"),
        _column("detail", _S, "text of noted, value of a setting, description of batch-opened, target of audited"),
        _column("over", _B, "true if the job had already ended: complete, failed or dead"),
        _column("pushed_at", _F, "if the row ends a lease or job: when the job was pushed, or put again after its end"),
        _column("server", _S, "name of the server that wrote the lake", always=True),
        _column("by_user", _S, "audited, queue-paused: the operator, if known"),
        _column("by_address", _S, "audited: the operator's network address, or local"),
        _column("changed", _I, "audited: how many jobs, queues, workers or schedules were changed"),
    ]
)  # fmt: skip
