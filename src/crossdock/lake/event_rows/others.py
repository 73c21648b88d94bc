"""Rows of less frequent events (see jobs.py): jobs made ready or edited, and events that do not concern a job."""

from collections.abc import Callable
from typing import Any, Final

from crossdock.lake.event_rows.columns import day_of
from crossdock.lake.event_rows.rows import NO_BOOKING, NO_LEASE, Others, Rows, of_lease
from crossdock.model import events as e

_NOT_LEASED: Final = (*NO_LEASE, *NO_BOOKING)


def readied(date: Rows, seq: int, event: e.Readied) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, event.t, "readied", "ready", event.via, row)
        rows.beside("why", event.why)
        seq += 1
    return seq


def scheduled(date: Rows, seq: int, event: e.Scheduled) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, None, "scheduled", "scheduled", "", row)
        seq += 1
    return seq


def buried(date: Rows, seq: int, event: e.Buried) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, None, "buried", "dead", event.via, row)
        rows.beside("due", event.due)
        seq += 1
    return seq


def revived(date: Rows, seq: int, event: e.Revived) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, event.t, "revived", "ready", event.via, row)
        rows.beside("to_queue", event.queue)
        rows.beside("failed_at", row.failed_at)
        seq += 1
    return seq


def rerouted(date: Rows, seq: int, event: e.Rerouted) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, None, "moved", "ready" if event.freed else None, event.via, row)
        rows.beside("to_queue", event.queue)
        seq += 1
    return seq


#: Events that edit a job in place.
_Edit = e.Held | e.Warned | e.Reprioritised | e.Tagged | e.DependenciesEdited | e.Noted


def _edited(
    rows: Others, seq: int, event: _Edit, name: str,
    state: str | None = None, priority: float | None = None, tail: tuple[Any, ...] = _NOT_LEASED,
) -> int:  # fmt: skip
    rows.add(
        seq, event.at, event.t, name, state, None, event.jid, event.number, event.queue, event.kind, event.origin,
        event.via, event.worker, event.attempt, event.priority if priority is None else priority,
        event.payload_bytes, *tail,
    )  # fmt: skip
    return seq + 1


def held(date: Rows, seq: int, event: e.Held) -> int:
    rows = date.others
    after = _edited(rows, seq, event, "held", "held")
    rows.beside("why", event.throttle)
    return after


def unheld(date: Rows, seq: int, event: e.Unheld) -> int:
    rows = date.others
    for row in event.rows:
        rows.job(seq, event.at, event.t, "unheld", "ready", "", row)
        rows.beside("why", event.name)
        seq += 1
    return seq


def rate_held(date: Rows, seq: int, event: e.RateHeld) -> int:
    return _by_rate(date.others, seq, event, "held", "held", event.via)


def rates_opened(date: Rows, seq: int, event: e.RatesOpened) -> int:
    return _by_rate(date.others, seq, event, "unheld", "ready", "")


def _by_rate(rows: Others, seq: int, event: e.RateHeld | e.RatesOpened, name: str, state: str, via: str) -> int:
    for row, key in zip(event.rows, event.rates, strict=True):
        rows.job(seq, event.at, None, name, state, via, row)
        rows.beside("why", f"rate {key}")
        seq += 1
    return seq


def surfaced(date: Rows, seq: int, event: e.Surfaced) -> int:
    rows, ended = date.others, event.ended
    lease = NO_LEASE if ended is None else of_lease(ended)
    rows.add(
        seq, event.at, event.t, "surfaced", "ready", None if ended is None else "surfaced", event.jid, event.number,
        event.queue, event.kind, event.origin, event.via, "" if ended is None else ended.worker, event.attempt,
        event.priority, event.payload_bytes, *lease, *NO_BOOKING,
    )  # fmt: skip
    rows.beside("to_queue", event.to_queue)
    rows.beside("pushed_at", event.pushed_at)
    return seq + 1


def warned(date: Rows, seq: int, event: e.Warned) -> int:
    rows = date.others
    booked = (event.queue, day_of(event.t))
    after = _edited(rows, seq, event, "warned", tail=(event.token, *NO_LEASE[1:], *booked))
    rows.book(retries=1)
    return after


def reprioritised(date: Rows, seq: int, event: e.Reprioritised) -> int:
    return _edited(date.others, seq, event, "reprioritised", priority=event.to)


def tagged(date: Rows, seq: int, event: e.Tagged) -> int:
    rows = date.others
    after = _edited(rows, seq, event, "tagged")
    rows.beside("tags", [str(tag) for tag in event.tags])
    return after


def needs_edited(date: Rows, seq: int, event: e.DependenciesEdited) -> int:
    rows = date.others
    after = _edited(rows, seq, event, "dependencies-edited", "blocked" if event.depends_on else "ready")
    rows.beside("needs", list(event.depends_on))
    return after


def noted(date: Rows, seq: int, event: e.Noted) -> int:
    rows = date.others
    after = _edited(rows, seq, event, "noted")
    rows.beside("detail", event.entry.name if event.shown is None else event.shown)
    return after


def _about(
    rows: Others, seq: int, event: e.Event, name: str, *, number: int | None = None, queue: str | None = None,
    via: str | None = None, t: float | None = None, token: int | None = None,
) -> int:  # fmt: skip
    """A row that names no more than this."""
    head = (event.at, t, name, None, None, None, number, queue, None, None, via)
    rows.add(seq, *head, None, None, None, None, token, *_NOT_LEASED[1:])
    return seq + 1


def renewed(date: Rows, seq: int, event: e.Renewed) -> int:
    rows = date.others
    after = _about(rows, seq, event, "renewed", number=event.number, t=event.t, token=event.token)
    rows.content(event.payload)
    return after


def started(date: Rows, seq: int, event: e.Started) -> int:
    rows = date.others
    seq = _about(rows, seq, event, "started")
    rows.beside("detail", str(event.epoch))
    for row in event.rows:
        rows.job(seq, event.at, None, "returned", "ready", "", row, "returned")
        rows.beside("why", "restarted")
        seq += 1
    return seq


def flushed(date: Rows, seq: int, event: e.Flushed) -> int:
    return _about(date.others, seq, event, "flushed", via=event.via)


def _of_queue(name: str) -> Callable[[Rows, int, Any], int]:
    return lambda rows, seq, event: _about(rows.others, seq, event, name, queue=event.queue)


def queue_paused(date: Rows, seq: int, event: e.QueuePaused) -> int:
    rows = date.others
    after = _about(rows, seq, event, "queue-paused", queue=event.queue)
    rows.beside("why", event.reason or None)
    rows.beside("by_user", event.user or None)
    return after


def audited(date: Rows, seq: int, event: e.Audited) -> int:
    rows = date.others
    after = _about(rows, seq, event, "audited", via=event.via)
    rows.beside("why", event.action)
    rows.beside("detail", event.target)
    rows.beside("by_user", event.user or None)
    rows.beside("by_address", event.address)
    rows.beside("changed", event.count)
    return after


def configured(date: Rows, seq: int, event: e.Configured) -> int:
    rows = date.others
    after = _about(rows, seq, event, "configured")
    rows.beside("why", event.option)
    rows.beside("detail", event.value)
    return after


def group_opened(date: Rows, seq: int, event: e.BatchOpened) -> int:
    rows = date.others
    after = _about(rows, seq, event, "batch-opened", via=event.via)
    rows.beside("group_name", event.name)
    rows.beside("parent_group", event.parent or None)
    rows.beside("detail", event.description or None)
    return after


def group_committed(date: Rows, seq: int, event: e.BatchCommitted) -> int:
    rows = date.others
    after = _about(rows, seq, event, "batch-committed")
    rows.beside("group_name", event.name)
    return after


def group_finished(date: Rows, seq: int, event: e.BatchFinished) -> int:
    rows = date.others
    after = _about(rows, seq, event, "batch-finished")
    rows.beside("group_name", event.name)
    rows.beside("callback", event.call.name.lower())
    return after


KINDS: Final[dict[type[e.Event], Callable[[Rows, int, Any], int]]] = {
    e.Readied: readied,
    e.Scheduled: scheduled,
    e.Buried: buried,
    e.Revived: revived,
    e.Rerouted: rerouted,
    e.Held: held,
    e.Unheld: unheld,
    e.RateHeld: rate_held,
    e.RatesOpened: rates_opened,
    e.Surfaced: surfaced,
    e.Warned: warned,
    e.Reprioritised: reprioritised,
    e.Tagged: tagged,
    e.DependenciesEdited: needs_edited,
    e.Noted: noted,
    e.Renewed: renewed,
    e.Started: started,
    e.Flushed: flushed,
    e.QueuePaused: queue_paused,
    e.QueueResumed: _of_queue("queue-resumed"),
    e.QueueForgotten: _of_queue("queue-forgotten"),
    e.Audited: audited,
    e.Configured: configured,
    e.BatchOpened: group_opened,
    e.BatchCommitted: group_committed,
    e.BatchFinished: group_finished,
}
