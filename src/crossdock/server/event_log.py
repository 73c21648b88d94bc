"""Log lines for events: leases that expire, jobs that end without success, and what operators change.

An observer of the group commit. Payloads and error messages are not logged: they may hold secrets.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

from crossdock import logs
from crossdock.model.events import AnyEvent, Audited, Buried, Event, Failed, LeaseExpired, Removed
from crossdock.model.events.base import ClosingEvent, JobRow
from crossdock.model.states import State

log = logging.getLogger("crossdock")

#: States of a job whose failure is final.
_OVER: Final = {State.DEAD: "dead", State.FAILED: "failed", State.GONE: "discarded"}


def _failed(event: Failed) -> None:
    if event.lost:
        _lease_expired(event)
    over = _OVER.get(event.then)
    if over is not None:
        text = f"job {event.jid} failed for good ({over})"
        group = event.failure.group or None
        _limited(logging.WARNING, "job-died", text, _fields(event), state=over, error_group=group)


def _lease_expired(event: ClosingEvent) -> None:
    text = f"the lease of job {event.jid} expired; worker {event.worker or 'unknown'} did not report in time"
    _limited(logging.WARNING, "lease-expired", text, _fields(event), run_s=round(event.run_s, 3))


def _removed(event: Removed) -> None:
    """Only foreground jobs, which end with their lease. Other removals are requests of clients and operators."""
    if event.why == "lease-expired":
        for row in event.rows:
            _limited(logging.WARNING, "lease-expired", f"the lease of job {row.jid} expired", _row_fields(row))


def _buried(event: Buried) -> None:
    count = len(event.rows)
    text = f"{count} {'job was' if count == 1 else 'jobs were'} moved to the dead jobs"
    first = _row_fields(event.rows[0]) if count == 1 else {}
    _limited(logging.INFO, "jobs-killed", text, first, count=count, via=event.via)


def _audited(event: Audited) -> None:
    """Long work of an operator has an event for each part; each has a line."""
    text = f"{event.user or 'an operator'}: {event.action} {event.target}"
    fields = {"user": event.user or None, "address": event.address or None, "via": event.via}
    _limited(logging.INFO, "operator-action", text, fields, action=event.action, target=event.target, count=event.count)


def _fields(event: ClosingEvent) -> dict[str, Any]:
    return {
        "job": event.jid,
        "number": event.number,
        "queue": event.queue,
        "kind": event.kind,
        "attempt": event.attempt,
        "worker": event.worker or None,
        "protocol": getattr(event, "leased_via", "") or event.via or event.origin,
    }


def _row_fields(row: JobRow) -> dict[str, Any]:
    fields = {"job": row.jid, "number": row.number, "queue": row.queue, "kind": row.kind, "attempt": row.attempt}
    if row.ended is not None:
        fields |= {"worker": row.ended.worker or None, "protocol": row.ended.via}
    return fields


def _limited(level: int, name: str, text: str, fields: dict[str, Any], **more: Any) -> None:
    logs.limited_event(log, level, name, text, **fields, **more)


_LINES: Final[dict[type[Event], Callable[[Any], None]]] = {
    Failed: _failed,
    LeaseExpired: _lease_expired,
    Removed: _removed,
    Buried: _buried,
    Audited: _audited,
}

_LOGGED: Final = frozenset(_LINES)


def log_events(changes: Sequence[Sequence[AnyEvent]], entries: Sequence[tuple[bytes, int]]) -> None:
    """Most commits have no event with a line. Then this takes less than 0.1 us per event."""
    if _LOGGED.isdisjoint(map(type, chain.from_iterable(changes))):
        return
    for event in chain.from_iterable(changes):
        line = _LINES.get(type(event))
        if line is not None:
            line(event)
