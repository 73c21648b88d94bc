"""Rows of Resqu's events (see jobs.py): rescheduled and deferred jobs, jobs of batches, and batches."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.lake.event_rows.columns import day_of
from crossdock.lake.event_rows.rows import NO_BOOKING, NO_LEASE, Rows
from crossdock.model.events import resqu as r
from crossdock.model.events.base import Event

_NOTHING: Final = (*NO_LEASE, *NO_BOOKING)


def rescheduled(date: Rows, seq: int, event: r.Rescheduled) -> int:
    """A worker finished the job and rescheduled it. The attempt succeeded or failed."""
    rows, to = date.others, event.to
    outcome = "failed" if event.failed else "succeeded"
    rows.add(
        seq, event.at, None, "rescheduled", "scheduled" if to.due else "ready", outcome, event.jid, event.number,
        event.queue, event.kind, event.origin, event.via, event.worker, event.attempt, event.priority,
        event.payload_bytes, event.token, event.leased_via or event.via, event.leased_at, event.wait_s, event.run_s,
        event.beats, event.queue, day_of(event.at),
    )  # fmt: skip
    if event.failed:
        rows.book(failures=1)
        rows.beside("error_message", event.message)
    else:
        rows.beside("booked_run", True)
    rows.beside("to_queue", to.queue)
    rows.beside("pushed_at", event.pushed_at)
    rows.spec(to)
    return seq + 1


def taken(date: Rows, seq: int, event: r.Taken) -> int:
    date.others.add(
        seq, event.at, None, "taken", "held", None, event.jid, event.number, event.queue, event.kind, event.origin,
        event.via, event.worker, event.attempt, event.priority, event.payload_bytes, *_NOTHING,
    )  # fmt: skip
    return seq + 1


def put_on_queue(date: Rows, seq: int, event: r.PutOnQueue) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, None, "put-on-queue", "ready", event.via, row)
        rows.beside("to_queue", event.queue)
        seq += 1
    return seq


def deferred(date: Rows, seq: int, event: r.Deferred) -> int:
    """A deferred job has no number yet."""
    rows, spec = date.others, event.spec
    rows.add(
        seq, event.at, None, "deferred", None, None, spec.jid, None, spec.queue, spec.kind, event.via, event.via,
        None, None, spec.priority, len(spec.payload), *_NOTHING,
    )  # fmt: skip
    rows.beside("why", event.name)
    rows.spec(spec)
    return seq + 1


def stage_pushed(date: Rows, seq: int, event: r.ResquBatchPushed) -> int:
    rows, spec = date.others, event.spec
    rows.add(
        seq, event.at, None, "pushed", "held", None, spec.jid, event.number, spec.queue, spec.kind, event.via,
        event.via, None, 0, spec.priority, len(spec.payload), *_NOTHING,
    )  # fmt: skip
    rows.beside("why", "batch")
    rows.spec(spec)
    rows.beside("group_name", event.name)
    return seq + 1


def _of_batch(name: str) -> Callable[[Rows, int, Any], int]:
    def add(date: Rows, seq: int, event: Any) -> int:
        rows = date.others
        head = (event.at, None, name, None, None, None, None, getattr(event, "queue", None) or None, None, None)
        rows.add(seq, *head, getattr(event, "via", None), None, None, None, None, *_NOTHING)
        rows.beside("group_name", event.name)
        return seq + 1

    return add


KINDS: Final[dict[type[Event], Callable[[Rows, int, Any], int]]] = {
    r.Rescheduled: rescheduled,
    r.Taken: taken,
    r.PutOnQueue: put_on_queue,
    r.Deferred: deferred,
    r.ResquBatchPushed: stage_pushed,
    r.ResquBatchOpened: _of_batch("resqu-batch-opened"),
    r.ResquBatchCommitted: _of_batch("resqu-batch-committed"),
    r.ResquBatchAssigned: _of_batch("resqu-batch-assigned"),
    r.ResquBatchEnded: _of_batch("resqu-batch-ended"),
}
