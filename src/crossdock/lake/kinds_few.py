"""The rows of the less frequent kinds of event (see kinds.py): jobs made ready or edited, and what is about no job."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.lake.rows import NO_BOOKING, NO_LEASE, Rows, day_of
from crossdock.model import events as e

_NOT_LEASED: Final = (*NO_LEASE, *NO_BOOKING)


def readied(rows: Rows, seq: int, era: int, event: e.Readied) -> int:
    for row in event.rows:
        rows.job(seq, era, event.at, event.t, "readied", "ready", event.via, row)
        rows.beside("why", event.why)
        seq += 1
    return seq


def scheduled(rows: Rows, seq: int, era: int, event: e.Scheduled) -> int:
    for row in event.rows:
        rows.job(seq, era, event.at, None, "scheduled", "scheduled", "", row)
        seq += 1
    return seq


def buried(rows: Rows, seq: int, era: int, event: e.Buried) -> int:
    for row in event.rows:
        rows.job(seq, era, event.at, None, "buried", "dead", event.via, row)
        rows.beside("due", event.due)
        seq += 1
    return seq


def revived(rows: Rows, seq: int, era: int, event: e.Revived) -> int:
    for row in event.rows:
        rows.job(seq, era, event.at, event.t, "revived", "ready", event.via, row)
        rows.beside("to_queue", event.queue)
        rows.beside("failed_at", row.failed_at)
        seq += 1
    return seq


def _edited(
    rows: Rows, seq: int, era: int, event: e.Warned | e.Reprioritised | e.Tagged | e.NeedsEdited | e.Noted, name: str,
    state: str | None = None, priority: float | None = None, tail: tuple[Any, ...] = _NOT_LEASED,
) -> int:  # fmt: skip
    rows.add((
        seq, era, event.at, event.t, name, state, None, event.jid, event.number, event.queue, event.kind, event.origin,
        event.via, event.worker, event.attempt, event.priority if priority is None else priority,
        event.payload_bytes, *tail,
    ))  # fmt: skip
    return seq + 1


def warned(rows: Rows, seq: int, era: int, event: e.Warned) -> int:
    booked = (event.queue, day_of(event.t), None, None)
    after = _edited(rows, seq, era, event, "warned", tail=(event.token, *NO_LEASE[1:], *booked))
    rows.book(retries=1)
    return after


def reprioritised(rows: Rows, seq: int, era: int, event: e.Reprioritised) -> int:
    return _edited(rows, seq, era, event, "reprioritised", priority=event.to)


def tagged(rows: Rows, seq: int, era: int, event: e.Tagged) -> int:
    after = _edited(rows, seq, era, event, "tagged")
    rows.beside("tags", [str(tag) for tag in event.tags])
    return after


def needs_edited(rows: Rows, seq: int, era: int, event: e.NeedsEdited) -> int:
    after = _edited(rows, seq, era, event, "needs-edited", "blocked" if event.needs else "ready")
    rows.beside("needs", list(event.needs))
    return after


def noted(rows: Rows, seq: int, era: int, event: e.Noted) -> int:
    after = _edited(rows, seq, era, event, "noted")
    rows.beside("detail", event.entry.name)
    return after


def _about(
    rows: Rows, seq: int, era: int, event: e.Event, name: str, *, number: int | None = None, queue: str | None = None,
    via: str | None = None, t: float | None = None, token: int | None = None,
) -> int:  # fmt: skip
    """A row that names no more than this."""
    head = (seq, era, event.at, t, name, None, None, None, number, queue, None, None, via)
    rows.add((*head, None, None, None, None, token, *_NOT_LEASED[1:]))
    return seq + 1


def renewed(rows: Rows, seq: int, era: int, event: e.Renewed) -> int:
    after = _about(rows, seq, era, event, "renewed", number=event.number, t=event.t, token=event.token)
    rows.content(event.payload)
    return after


def started(rows: Rows, seq: int, era: int, event: e.Started) -> int:
    seq = _about(rows, seq, era, event, "started")
    rows.beside("detail", str(event.epoch))
    for row in event.rows:
        rows.job(seq, era, event.at, None, "returned", "ready", "", row, "returned")
        rows.beside("why", "restarted")
        seq += 1
    return seq


def flushed(rows: Rows, seq: int, era: int, event: e.Flushed) -> int:
    return _about(rows, seq, era, event, "flushed", via=event.via)


def _of_queue(name: str) -> Callable[[Rows, int, int, Any], int]:
    return lambda rows, seq, era, event: _about(rows, seq, era, event, name, queue=event.queue)


def configured(rows: Rows, seq: int, era: int, event: e.Configured) -> int:
    after = _about(rows, seq, era, event, "configured")
    rows.beside("why", event.option)
    rows.beside("detail", event.value)
    return after


def group_opened(rows: Rows, seq: int, era: int, event: e.GroupOpened) -> int:
    after = _about(rows, seq, era, event, "group-opened", via=event.via)
    rows.beside("group_name", event.name)
    rows.beside("parent_group", event.parent or None)
    rows.beside("detail", event.description or None)
    return after


def group_committed(rows: Rows, seq: int, era: int, event: e.GroupCommitted) -> int:
    after = _about(rows, seq, era, event, "group-committed")
    rows.beside("group_name", event.name)
    return after


def group_finished(rows: Rows, seq: int, era: int, event: e.GroupFinished) -> int:
    after = _about(rows, seq, era, event, "group-finished")
    rows.beside("group_name", event.name)
    rows.beside("callback", event.call.name.lower())
    return after


KINDS: Final[dict[type[e.Event], Callable[[Rows, int, int, Any], int]]] = {
    e.Readied: readied,
    e.Scheduled: scheduled,
    e.Buried: buried,
    e.Revived: revived,
    e.Warned: warned,
    e.Reprioritised: reprioritised,
    e.Tagged: tagged,
    e.NeedsEdited: needs_edited,
    e.Noted: noted,
    e.Renewed: renewed,
    e.Started: started,
    e.Flushed: flushed,
    e.QueuePaused: _of_queue("queue-paused"),
    e.QueueResumed: _of_queue("queue-resumed"),
    e.QueueForgotten: _of_queue("queue-forgotten"),
    e.Configured: configured,
    e.GroupOpened: group_opened,
    e.GroupCommitted: group_committed,
    e.GroupFinished: group_finished,
}
